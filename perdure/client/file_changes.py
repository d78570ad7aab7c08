"""The changes of the turns of a conversation in its workspace."""

import asyncio
import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from perdure.agent.loop.state import State
from perdure.client.file_change import Changes, FileChange
from perdure.events.entry import Files
from perdure.storage.changes.compare import compare_snapshots
from perdure.storage.changes.record import ChangedFile, FileVersion, read_records
from perdure.storage.errors import Altered, Unrestorable
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.state import load_cached_state, read_state

MAX_COMPARED_LINES = 40_000
"""Lines of both versions of a file: comparing more takes seconds."""

MAX_DIFF_CHARS = 1_000_000
"""Length limit of a whole diff."""

RECORD_TIMEOUT = 10.0
"""Seconds to wait for the record of a turn that has just ended."""

RECORD_POLL_INTERVAL = 0.05
ENTRIES_PER_READ = 100


@dataclass(frozen=True)
class WorkspaceChanges:
    """The files that differ, and sentences on what could not be compared."""

    files: Sequence[ChangedFile] = ()
    faults: Sequence[str] = ()

    def summarize(self) -> list[FileChange]:
        return [_summarize(file) for file in self.files]

    def diff(self) -> str:
        """Build the unified diff of all files; its last line says what is left out."""
        parts: list[str] = []
        size = 0
        for number, file in enumerate(self.files):
            part = "".join(_diff_lines(file))
            size += len(part)
            if size > MAX_DIFF_CHARS:
                count = len(self.files) - number
                parts.append(f"[{count} more file{'' if count == 1 else 's'}: too long to show]\n")
                break
            parts.append(part)
        return "".join(parts)


class ChangeSource(Protocol):
    """The part of a conversation that lists and differences of its files need."""

    async def changes(self, after: int = -1) -> Changes: ...


async def list_file_changes(conversation: ChangeSource, after: int = -1) -> list[FileChange]:
    """List the files that the events after slot `after` changed, sorted by path.

    Of a directory of the user's, whole turns are recorded, when they end: `after` is the last
    slot before a turn. Raises StoreError.
    """
    changes = await conversation.changes(after)
    return await asyncio.to_thread(changes.summarize)


async def diff_files(conversation: ChangeSource, after: int = -1) -> str:
    """Build a unified diff of what the events after slot `after` changed; see above."""
    changes = await conversation.changes(after)
    return await asyncio.to_thread(changes.diff)


async def read_workspace_changes(
    log: EventLog, after: int = -1, through: int | None = None
) -> WorkspaceChanges:
    """Read both versions of each file that the events after slot `after` changed.

    `through` is the last of these events, by default the newest. Raises StoreError.
    """
    state = await read_state(log)
    if state.files_seq is not None:
        newest = state.files_seq if through is None else min(through, state.files_seq)
        return await _compare_snapshots(log, newest, after)
    await _await_record(log, state)
    files: dict[str, ChangedFile] = {}
    faults = []
    async for record in read_records(log.store, log.user_id, log.conversation_id, after):
        if through is not None and record.first > through:
            break
        faults += [f"The changes of a turn are not recorded: {record.fault}"] * bool(record.fault)
        for file in record.files:
            first = files.get(file.path, file)
            files[file.path] = ChangedFile(path=file.path, before=first.before, after=file.after)
    differing = (file for file in files.values() if _differs(file))
    return WorkspaceChanges(sorted(differing, key=lambda file: file.path), faults)


async def _compare_snapshots(log: EventLog, through: int, after: int) -> WorkspaceChanges:
    newest, oldest = await find_files(log, through), await find_files(log, after)
    if newest is None or newest[1].snapshot is None:
        return WorkspaceChanges()
    fault, before = newest[1].fault, oldest[1].snapshot if oldest else None
    faults = [f"The newest changes are not kept: {fault}"] if fault else []
    try:
        files = await compare_snapshots(log.store, before, newest[1].snapshot)
    except (Altered, Unrestorable) as error:
        return WorkspaceChanges(faults=[*faults, str(error)])
    return WorkspaceChanges(files, faults)


async def find_files(log: EventLog, upto: int | None = None) -> tuple[int, Files] | None:
    """Find the last entry up to slot `upto` that has files; return its slot and its files.

    Without `upto`, or where the log is shorter, it is the last one of the log.
    """
    end = await log.end()
    if upto is not None:
        end = min(end, upto + 1)
    while end > 0:
        first = max(0, end - ENTRIES_PER_READ)
        for entry in reversed(await log.read(first, end - first)):
            if entry.files is not None:
                return entry.seq, entry.files
        end = first
    return None


async def _await_record(log: EventLog, state: State) -> None:
    """Wait until the turn that has just ended is recorded: its saved state comes after that."""
    if state.spec is None or state.spec.workspace is None or state.status == "running":
        return
    try:
        async with asyncio.timeout(RECORD_TIMEOUT):
            # The store does not tell: it has to be asked.
            while (await load_cached_state(log)).next_seq < state.next_seq:  # noqa: ASYNC110
                await asyncio.sleep(RECORD_POLL_INTERVAL)
    except TimeoutError:
        return  # no worker runs, and what is recorded is all there is


def _differs(file: ChangedFile) -> bool:
    """Return whether a file differs after several turns, of which the last may undo the first."""
    return file.before != file.after or (file.before is not None and file.before.text is None)


def _summarize(file: ChangedFile) -> FileChange:
    kind: Literal["added", "changed", "removed"] = (
        "added" if file.before is None else "removed" if file.after is None else "changed"
    )
    if _find_reason(file) is not None:
        return FileChange(file.path, kind, None, None)
    lines = [*difflib.unified_diff(_lines(file.before), _lines(file.after), n=0)][2:]
    added = sum(line.startswith("+") for line in lines)
    removed = sum(line.startswith("-") for line in lines)
    return FileChange(file.path, kind, added, removed)


def _diff_lines(file: ChangedFile) -> Iterator[str]:
    names = [
        f"{side}/{file.path}" if version is not None else "/dev/null"
        for side, version in (("a", file.before), ("b", file.after))
    ]
    yield f"diff --git a/{file.path} b/{file.path}\n"
    if file.before is None:
        yield "new file mode 100644\n"
    elif file.after is None:
        yield "deleted file mode 100644\n"
    if (reason := _find_reason(file)) is not None:
        yield f"[{_summarize(file).kind}, {reason}]\n"
        return
    before, after = names
    for line in difflib.unified_diff(_lines(file.before), _lines(file.after), before, after):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _find_reason(file: ChangedFile) -> str | None:
    """Return why the lines of the file are not compared."""
    versions = [version for version in (file.before, file.after) if version is not None]
    if reason := next((version.reason for version in versions if version.text is None), None):
        return reason
    too_long = sum(map(len, map(_lines, versions))) > MAX_COMPARED_LINES
    return "too large to compare" if too_long else None


def _lines(version: FileVersion | None) -> list[str]:
    """Split at newlines alone: other ends of lines are a part of the text."""
    text = version.text if version is not None else None
    return text.replace("\n", "\n\0").removesuffix("\0").split("\0") if text else []
