"""Deleting conversations: they are closed and hidden, and the store keeps their logs."""

from starlette.requests import Request

from perdure.client.conversation import Conversation
from perdure.gateway.edge.audit import audit
from perdure.gateway.gateway import Gateway


async def delete_conversation(
    gateway: Gateway, request: Request, conversation: Conversation
) -> None:
    """Close a conversation of the caller's and hide it. Raises NotFound, Forbidden."""
    user_id = conversation.log.user_id
    await conversation.delete()
    await gateway.hidden.hide(user_id, conversation.id)
    gateway.followers.remove(user_id, conversation.id)
    audit(request, "conversation.delete")
