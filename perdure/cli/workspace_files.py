"""The files of a conversation's workspace: those in the store, or those that a gateway serves."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol

from perdure.cli.environment import (
    connect_gateway,
    find_environment,
    open_stored_log,
)
from perdure.client.file_change import Changes
from perdure.client.file_changes import read_workspace_changes
from perdure.client.http.conversation import HttpConversation
from perdure.client.ids import split_owner
from perdure.errors import Conflict, Invalid, NotFound
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.state import read_state
from perdure.storage.snapshots.manifest import SnapshotCache, load
from perdure.storage.snapshots.restore import restore
from perdure.storage.snapshots.tree import File


class WorkspaceFiles(Protocol):
    """The newest files of a workspace that are kept."""

    async def sizes(self) -> dict[str, int]:
        """Return the size in bytes of each file, by path."""

    async def copy(self, target: Path) -> None:
        """Write them to a new folder. Raises NotFound, Conflict and StoreError."""


async def open_files(conversation_id: str) -> WorkspaceFiles:
    """Open the files of a conversation, of another user for `USER/ID`."""
    if (served := await _find_served(conversation_id)) is not None:
        return ServedFiles(served)
    log = await open_stored_log(conversation_id)
    state = await read_state(log)
    entry = await log.get(state.files_seq) if state.files_seq is not None else None
    return StoredFiles(log, entry.files.snapshot if entry and entry.files else None)


async def open_changes(conversation_id: str, after: int) -> Changes:
    """Compare the files of the workspace after slot `after` with the newest ones."""
    if (served := await _find_served(conversation_id)) is not None:
        return await served.changes(after)
    return await read_workspace_changes(await open_stored_log(conversation_id), after)


async def _find_served(conversation_id: str) -> HttpConversation | None:
    settings = (await find_environment()).settings
    if settings.gateway is None:
        return None
    return (await connect_gateway(settings)).conversation(*split_owner(conversation_id))


@dataclass(frozen=True)
class StoredFiles:
    """The files of a snapshot; `key` is None where there is none."""

    log: EventLog
    key: str | None

    async def sizes(self) -> dict[str, int]:
        if self.key is None:
            return {}
        tree = (await load(self.log.store, self.key, SnapshotCache())).tree
        return {path: item.size for path, item in tree.items() if isinstance(item, File)}

    async def copy(self, target: Path) -> None:
        if self.key is None:
            raise _no_files()
        async with _new_folder(target) as folder:
            await restore(self.log.store, self.key, folder)


@dataclass(frozen=True)
class ServedFiles:
    """The files that a gateway has: their contents, without modes and links."""

    conversation: HttpConversation

    async def sizes(self) -> dict[str, int]:
        return {file.path: file.size for file in (await self.conversation.files()).items}

    async def copy(self, target: Path) -> None:
        listed = await self.conversation.files()
        if listed.seq is None:
            raise _no_files()
        async with _new_folder(target) as folder:
            await asyncio.to_thread(folder.mkdir)
            for file in listed.items:
                body = await self.conversation.read_file(file.path, listed.seq)
                await asyncio.to_thread(_write, folder, file.path, body)


def _write(folder: Path, path: str, body: bytes) -> None:
    """Write a file below a folder. Raises Invalid for a path that leads out of it."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts:
        raise Invalid(f"The gateway names a file {path!r}, which is in no workspace.")
    target = folder.joinpath(*parts)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(body)


@asynccontextmanager
async def _new_folder(target: Path) -> AsyncIterator[Path]:
    """Yield the path of a folder to make, which becomes `target`. Raises Conflict."""
    parent = await asyncio.to_thread(_make_parent, target)
    with tempfile.TemporaryDirectory(prefix=".perdure-", dir=parent) as scratch:
        folder = Path(scratch) / "files"
        yield folder
        await asyncio.to_thread(folder.rename, target)


def _make_parent(target: Path) -> Path:
    if target.exists():
        raise Conflict(f"There is {target} already.", "Name a folder that is not there yet.")
    parent = target.absolute().parent
    parent.mkdir(parents=True, exist_ok=True)
    return parent


def _no_files() -> NotFound:
    return NotFound(
        "The store has no files of the conversation.",
        "What it works on is in its workspace, which `perdure status` names.",
    )
