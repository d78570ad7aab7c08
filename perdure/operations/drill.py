"""A drill: restore a store into an empty one, verify everything, and say what would go on."""

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from perdure.errors import Conflict
from perdure.operations.reopen import needs_workflow
from perdure.storage import keys
from perdure.storage.backup.objects import Copied
from perdure.storage.backup.stores import copy_store, is_empty
from perdure.storage.discussions.folder import list_sessions
from perdure.storage.discussions.verify import verify_discussion
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.inspection import Finding
from perdure.storage.log.state import read_state
from perdure.storage.log.verify import verify
from perdure.storage.store import Store, list_folders


@dataclass
class Drill:
    """The outcome of a drill: what was restored, and what of it is damaged."""

    restored: Copied
    verified: int = 0
    """Conversations and discussions that were verified."""
    to_reopen: int = 0
    """Conversations that were in the middle of a turn: `perdure reopen` goes on with them."""
    damages: list[dict[str, Any]] = field(default_factory=list)


async def restore(
    source: Store, target: Store, moment: datetime, report: Callable[[Copied], None]
) -> Copied:
    """Restore a store as its logs were at a moment into an empty one.

    Raises Conflict if the target has objects, and StoreError.
    """
    if not await is_empty(target):
        hint = "Name an empty folder or bucket: nothing is written over what is there."
        raise Conflict("The store to restore into is not empty.", hint)
    return await copy_store(source, target, moment, report)


async def verify_restored(store: Store, restored: Copied, report: Callable[[int], None]) -> Drill:
    """Verify every log of a restored store, and read the state of each conversation.

    `report` is called with the number of logs so far. Raises StoreError.
    """
    drill = Drill(restored)
    for user_id in await list_folders(store, keys.USERS):
        async for log in _open_logs(store, user_id):
            damages = [it async for it in verify(log) if it.kind != "note"]
            _add(drill, user_id, log.conversation_id, damages)
            if not any(it.is_slot for it in damages):
                drill.to_reopen += needs_workflow(await read_state(log))
            report(drill.verified)
        for session_id in await list_sessions(store, user_id):
            verified = await verify_discussion(store, user_id, session_id)
            _add(drill, user_id, session_id, verified.findings)
            report(drill.verified)
    return drill


async def _open_logs(store: Store, user_id: str) -> AsyncGenerator[EventLog, None]:
    """Yield the logs of all conversations, also of those that no list shows."""
    for name in await list_folders(store, keys.conversations_prefix(user_id)):
        if keys.is_conversation_id(name):
            yield EventLog(store, user_id, name)


def _add(drill: Drill, user_id: str, name: str, findings: list[Finding]) -> None:
    drill.verified += 1
    for finding in findings:
        fields = {"kind": finding.kind, "key": finding.key, "detail": finding.detail}
        drill.damages.append({"user": user_id, "id": name, **fields})
