"""What routes need of conversations."""

from perdure.client.conversation import Conversation
from perdure.errors import NotFound
from perdure.storage.log.state import load_cached_state


async def require_conversation(conversation: Conversation) -> int:
    """Return the number of slots of its log. Raises NotFound, Unreachable, StoreError."""
    log = conversation.log
    # Of a long log only what follows the cached state is listed.
    end = await log.end(hint=(await load_cached_state(log)).next_seq)
    if end == 0 and not await conversation.workflow.is_running():
        raise NotFound.for_conversation(conversation.id)
    return end
