"""Conversations as lists and the API describe them."""

from datetime import datetime
from typing import Any

from perdure.agent.loop.start import ConversationStatus
from perdure.api.conversations import Conversation as Description
from perdure.client.access import find_access
from perdure.storage.conversations import read_creation_time
from perdure.storage.errors import BadSlot
from perdure.storage.log.event_log import EventLog


async def describe_conversation(
    log: EventLog, status: ConversationStatus, state: dict[str, Any] | None
) -> Description:
    """Describe a conversation of this status, and of this session state. Raises StoreError."""
    return Description(
        id=log.conversation_id,
        owner=log.user_id,
        access=await find_access(log.store),
        status=status,
        state=state,
        first_own_seq=await log.first_own_seq(),
        created=_format(await read_creation_time(log.store, log.user_id, log.conversation_id)),
        updated=await _find_update(log, status.next_seq),
    )


async def _find_update(log: EventLog, next_seq: int) -> str | None:
    if next_seq == 0:
        return None
    try:
        return f"{(await log.get(next_seq - 1)).event.timestamp}+00:00"
    except BadSlot:  # its status says so
        return None


def _format(moment: datetime | None) -> str | None:
    return moment.isoformat(timespec="milliseconds") if moment else None
