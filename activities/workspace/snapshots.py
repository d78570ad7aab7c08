"""Snapshots of a conversation's files, taken when they changed, restored on other workers."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path

from perdure.activities.support.resources import Resources
from perdure.agent.spec import Agent
from perdure.events.entry import Entry, Files
from perdure.secrets.registry import Secrets
from perdure.storage.errors import Altered, StoreRefused, TooLarge, Unrestorable, WorkspaceBusy
from perdure.storage.keys import conversation_prefix
from perdure.storage.log.event_log import EventLog
from perdure.storage.snapshots.mark import acquire_lock, last_snapshot_key
from perdure.storage.snapshots.restore import restore
from perdure.storage.snapshots.take import take
from perdure.storage.snapshots.tree import Skipped
from perdure.tools.terminal import SESSIONS

logger = logging.getLogger(__name__)

MAX_NAMED_SKIPS = 10
"""Most skipped files of a snapshot that the log names."""

NO_SLOT = -1
"""The slot of files of which nothing is known."""


def keeps_files(resources: Resources, spec: Agent) -> bool:
    """Tell whether the files of such a conversation are kept in the store."""
    is_enabled = spec.workspace is None if spec.snapshots is None else spec.snapshots
    return is_enabled and resources.home is not None


async def restore_files(
    resources: Resources,
    log: EventLog,
    spec: Agent,
    slot: int | None,
    tell: Callable[[bool], None] = lambda _: None,
) -> None:
    """Restore the files of slot `slot`, unless these or later ones are here already.

    `tell` is called with True when files begin to be restored, and with False when that ends.

    Later changes here stay, as a call with an unknown outcome may have made them. Raises Altered,
    Unrestorable, StoreError, and OSError if the files cannot be written.
    """
    if slot is None or not keeps_files(resources, spec):
        return
    folder = resources.workspace(spec, log)
    async with _lock_folder(folder) as descriptor:
        if _read_slot(descriptor) >= slot and last_snapshot_key(folder) is not None:
            return
        files = (await log.get(slot)).files
        if files is None or files.snapshot is None:
            return
        # Processes that run in the replaced folder would stay in the old one.
        await SESSIONS.close_session(log.prefix)
        resources.mcp.close_conversation(log.prefix)
        tell(True)
        try:
            await restore(resources.store, files.snapshot, folder, resources.snapshots)
            await asyncio.to_thread(resources.sandbox.prepare, folder)
        finally:
            tell(False)
        _write_slot(descriptor, slot)
    logger.info("conversation %s goes on here, with its files", log.conversation_id)


async def record_with_files(
    resources: Resources,
    log: EventLog,
    spec: Agent,
    slot: int | None,
    append: Callable[..., Awaitable[list[Entry]]],
    *,
    changed: bool,
) -> list[Entry]:
    """`append` an event together with the snapshot of its files, if they changed.

    The files are in the store before the answer is in the log. Concurrent answers wait for each
    other, so that later slots have later files. `slot` has the last snapshot; `changed` says
    whether the files may differ by now. If another process holds the folder, the next answer
    takes the files along. Raises what `append` raises, and StoreUnavailable.
    """
    if not keeps_files(resources, spec) or (slot is None and not changed):
        return await append()
    folder = resources.workspace(spec, log)
    try:
        async with _lock_folder(folder) as descriptor:
            newest = max(_read_slot(descriptor), NO_SLOT if slot is None else slot)
            before = (await log.get(newest)).files if newest != NO_SLOT else None
            files = await _snapshot_files(resources, log, folder, before, changed)
            entries = await append(files=None if files == before else files)
            if entries[-1].files == files:
                _write_slot(descriptor, entries[-1].seq)
            return entries
    except WorkspaceBusy as error:
        logger.warning("%s", error)
        return await append()


async def _snapshot_files(
    resources: Resources, log: EventLog, folder: Path, before: Files | None, changed: bool
) -> Files:
    assert resources.home is not None, "files without a home are not kept"
    files = (before or Files(home="")).model_copy(update={"home": resources.home})
    if not changed:
        return files
    prefix, last = conversation_prefix(log.user_id, log.conversation_id), files.snapshot
    secrets = resources.secrets_of(log.user_id)
    try:
        options = (resources.snapshots, secrets.names_in)
        key = await take(resources.store, prefix, folder, last, *options) or last
    except (Altered, Unrestorable, TooLarge, StoreRefused, OSError) as error:
        fault = secrets.mask(str(error))  # the log masks events, and not their files
        logger.warning("the files of %s are not kept: %s", log.conversation_id, fault)
        return files.model_copy(update={"fault": fault})
    if key == last:
        return files.model_copy(update={"fault": None})
    left_out = _skipped_files(resources, key, secrets)
    return Files(home=resources.home, snapshot=key, left_out=left_out)


def _skipped_files(resources: Resources, key: str | None, secrets: Secrets) -> dict[str, str]:
    """Return the files that the new snapshot skipped, with the reasons."""
    snapshot = resources.snapshots.get(key) if key else None
    tree = snapshot.tree.items() if snapshot else ()
    skipped = ((path, entry.reason) for path, entry in tree if isinstance(entry, Skipped))
    return {secrets.mask(path): why for path, why in islice(skipped, MAX_NAMED_SKIPS)}


@asynccontextmanager
async def _lock_folder(folder: Path) -> AsyncIterator[int]:
    """Lock a folder against all processes; the lock of a process that dies is released.

    Yields the descriptor of the file beside the folder that holds the slot of its files.
    """
    lock_folder = folder.parent / ".snapshots"
    lock_folder.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(lock_folder / f"{folder.name}.slot", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        await acquire_lock(descriptor, folder)
        yield descriptor
    finally:
        os.close(descriptor)


def _read_slot(descriptor: int) -> int:
    text = os.pread(descriptor, 16, 0)
    return int(text) if text else NO_SLOT


def _write_slot(descriptor: int, slot: int) -> None:
    os.pwrite(descriptor, b"%-16d" % slot, 0)
