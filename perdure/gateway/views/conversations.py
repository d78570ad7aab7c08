"""Conversations as the API shows them."""

from datetime import datetime

from perdure.api.conversations import Conversation as Shown
from perdure.client.access import find_access
from perdure.client.conversation import Conversation
from perdure.errors import NotFound
from perdure.storage.conversations import read_creation_time
from perdure.storage.errors import BadSlot
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.state import load_cached_state


async def show_conversation(conversation: Conversation) -> Shown:
    """Describe a conversation with its status. Raises NotFound, Unreachable, StoreError."""
    status = await conversation.status()
    log = conversation.log
    return Shown(
        id=conversation.id,
        owner=log.user_id,
        access=await find_access(log.store),
        status=status,
        first_own_seq=await log.first_own_seq(),
        created=_format(await read_creation_time(log.store, log.user_id, conversation.id)),
        updated=await _find_update(log, status.next_seq),
    )


async def require_conversation(conversation: Conversation) -> int:
    """Return the number of slots of its log. Raises NotFound, Unreachable, StoreError."""
    log = conversation.log
    # Of a long log only what follows the cached state is listed.
    end = await log.end(hint=(await load_cached_state(log)).next_seq)
    if end == 0 and not await conversation.workflow.is_running():
        raise NotFound.for_conversation(conversation.id)
    return end


async def _find_update(log: EventLog, next_seq: int) -> str | None:
    if next_seq == 0:
        return None
    try:
        return f"{(await log.get(next_seq - 1)).event.timestamp}+00:00"
    except BadSlot:  # its status says so
        return None


def _format(moment: datetime | None) -> str | None:
    return moment.isoformat(timespec="milliseconds") if moment else None
