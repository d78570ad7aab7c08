"""The stored record of the files that the actions of one turn changed."""

import zlib
from collections.abc import AsyncIterator

from pydantic import Field

from perdure.events.base import Frozen
from perdure.storage.keys import conversation_prefix
from perdure.storage.snapshots.packs import inflate
from perdure.storage.store import Store

MAX_TEXT_BYTES = 512 << 10
"""Bytes of a file whose text is compared; of a larger one it is only said that it changed."""

MAX_RECORD_BYTES = 16 << 20
"""Bytes of the texts in one record."""

GENERATED_FOLDERS = frozenset(
    (
        *(".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", "venv", ".tox", ".nox"),
        *(".mypy_cache", ".pytest_cache", ".ruff_cache"),
    )
)
"""Names of folders whose files are a program's own, and changes in them nobody's to read."""


class FileVersion(Frozen):
    """A file as it was at one time; without a `text` there is a `reason` for that."""

    text: str | None = None
    reason: str | None = None


class ChangedFile(Frozen):
    """A file that differs; None stands for a file that is not there."""

    path: str
    before: FileVersion | None = None
    after: FileVersion | None = None


class ChangeRecord(Frozen):
    """The changes of a turn whose first action that may have changed files is in slot `first`."""

    version: int = Field(default=1, le=1)
    first: int
    files: tuple[ChangedFile, ...] = ()
    fault: str | None = None
    """The reason why changes could not be recorded."""


def read_version(data: bytes) -> FileVersion:
    """Make the version of a file from its bytes."""
    if len(data) > MAX_TEXT_BYTES:
        return FileVersion(reason="too large to compare")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return FileVersion(reason="binary")
    return FileVersion(reason="binary") if "\0" in text else FileVersion(text=text)


async def write_record(
    store: Store, user_id: str, conversation_id: str, record: ChangeRecord
) -> None:
    """Store the record; a repetition replaces it."""
    body = zlib.compress(record.model_dump_json(exclude_none=True).encode())
    await store.replace(f"{_folder(user_id, conversation_id)}{record.first:06d}", body)


async def read_records(
    store: Store, user_id: str, conversation_id: str, after: int
) -> AsyncIterator[ChangeRecord]:
    """Yield the records of turns whose first change came after slot `after`, in order."""
    folder = _folder(user_id, conversation_id)
    last = f"{folder}{after:06d}" if after >= 0 else ""
    while keys := await store.list(folder, last):
        for key in keys:
            if (body := await store.read(key)) is not None:
                yield _parse(int(key.removeprefix(folder)), body)
        last = keys[-1]


def _parse(first: int, body: bytes) -> ChangeRecord:
    try:
        return ChangeRecord.model_validate_json(inflate(body, 4 * MAX_RECORD_BYTES))
    except ValueError:
        return ChangeRecord(first=first, fault="it is no record of a version that is known")


def _folder(user_id: str, conversation_id: str) -> str:
    return f"{conversation_prefix(user_id, conversation_id)}workspace/changes/"
