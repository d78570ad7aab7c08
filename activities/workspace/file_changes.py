"""The record of what the actions of a turn changed in a directory of the user's.

A conversation's own folder has snapshots instead. The directory is scanned when a turn begins,
while the model thinks, and once more when it has ended: no step waits for more than the first scan.
"""

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

from perdure.activities.support.resources import OpenTurn, Resources
from perdure.activities.workspace.snapshots import keeps_files
from perdure.agent.spec import Agent
from perdure.secrets.registry import Secrets
from perdure.storage.changes.baseline import (
    close_baseline,
    find_changes,
    note_first_action,
    open_baseline,
)
from perdure.storage.changes.record import (
    MAX_RECORD_BYTES,
    ChangedFile,
    ChangeRecord,
    FileVersion,
    write_record,
)
from perdure.storage.errors import TooLarge
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.reader import LogReader
from perdure.temporal.names import qualify

logger = logging.getLogger(__name__)


def find_recorded_directory(resources: Resources, spec: Agent) -> Path | None:
    """Return the user's directory in which the agent works, if its changes are recorded."""
    if spec.workspace is None or keeps_files(resources, spec):
        return None
    directory = Path(spec.workspace)
    is_own = directory.is_relative_to(resources.workspaces)
    return directory if directory.is_dir() and not is_own else None


def begin_scan(resources: Resources, spec: Agent, log: LogReader) -> None:
    """Begin to scan the directory for a turn, unless that has been done; do not wait for it."""
    turns = resources.open_turns
    directory = find_recorded_directory(resources, spec)
    if directory is None or log.prefix in turns:
        return
    work = (_folder(resources), directory, _name(log))
    scan = asyncio.create_task(_try(lambda: open_baseline(*work), log))
    turns[log.prefix] = OpenTurn(scan)


async def begin_changes(resources: Resources, spec: Agent, log: LogReader, seq: int) -> None:
    """Wait for the scan before the action in slot `seq`, which may change files."""
    begin_scan(resources, spec, log)
    turn = resources.open_turns.get(log.prefix)
    directory = find_recorded_directory(resources, spec)
    if turn is None or directory is None:
        return
    is_first, turn.first = turn.first is None, seq if turn.first is None else turn.first
    if await asyncio.shield(turn.scan) is None and is_first:
        work = (_folder(resources), directory, _name(log), seq)
        await _try(lambda: note_first_action(*work), log)


async def record_changes(resources: Resources, log: EventLog, spec: Agent | None) -> None:
    """Store what the actions of the turn changed, once it has ended. Raises StoreError."""
    directory = find_recorded_directory(resources, spec) if spec else None
    turn = resources.open_turns.pop(log.prefix, None)
    if directory is None:
        return
    place, secrets = (_folder(resources), directory, _name(log)), resources.secrets_of(log.user_id)
    fault = await asyncio.shield(turn.scan) if turn is not None else None
    if fault is None:
        changes: list[tuple[int, list[ChangedFile]] | None] = []
        fault = await _try(lambda: changes.append(find_changes(*place)), log)
        for first, files in filter(None, changes):
            readable = await asyncio.to_thread(_leave_out, files, secrets)
            record = ChangeRecord(first=first, files=tuple(readable))
            await write_record(log.store, log.user_id, log.conversation_id, record)
    if fault is not None and turn is not None and turn.first is not None:
        record = ChangeRecord(first=turn.first, fault=secrets.mask(fault))
        await write_record(log.store, log.user_id, log.conversation_id, record)
    await _try(lambda: close_baseline(*place), log)


def _folder(resources: Resources) -> Path:
    return resources.workspaces / ".baselines"


def _name(log: LogReader) -> str:
    """Return the name of the conversation's baseline: several users may have one id."""
    return qualify(log.user_id, log.conversation_id)


async def _try(work: Callable[[], None], log: LogReader) -> str | None:
    """Do the work in a thread; return why it failed: no action fails for want of a record."""
    try:
        await asyncio.to_thread(work)
    except (OSError, TooLarge, sqlite3.Error) as error:
        logger.warning("the changes of %s are not recorded: %s", log.conversation_id, error)
        return str(error)
    return None


def _leave_out(files: Sequence[ChangedFile], secrets: Secrets) -> list[ChangedFile]:
    """Leave out texts that hold a secret, and those beyond the size of a record."""
    size = 0

    def reduce(version: FileVersion | None) -> FileVersion | None:
        nonlocal size
        if version is None or version.text is None:
            return version
        data = version.text.encode()
        if names := secrets.names_in(data):
            return FileVersion(reason=f"it holds the value of {', '.join(sorted(names))}")
        size += len(data)
        return version if size <= MAX_RECORD_BYTES else FileVersion(reason="too many changes")

    return [
        ChangedFile(
            path=secrets.mask(file.path), before=reduce(file.before), after=reduce(file.after)
        )
        for file in files
    ]
