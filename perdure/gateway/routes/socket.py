"""The frames of a conversation on a socket, which also takes requests."""

import re
from contextlib import AsyncExitStack

from fastapi import APIRouter, WebSocket

from perdure.errors import ClientError, NotFound
from perdure.gateway.callers import (
    CONVERSATION_PATTERN,
    USER_PATTERN,
    ConversationCall,
    address,
    admit,
    authenticate,
    find_gateway,
)
from perdure.gateway.credentials import credential_checks
from perdure.gateway.errors import Refused
from perdure.gateway.following.followers import Followers
from perdure.gateway.socket_session import SocketSession, refuse, to_error_frame
from perdure.storage.errors import StoreError

router = APIRouter()

MAX_SEQ = 2**53


@router.websocket("/v1/conversations/{conversation_id}/socket")
async def follow_by_socket(socket: WebSocket) -> None:
    """Send the frames of a conversation after the slot `after_seq`, and take requests.

    A connection that ends is closed with a code that says whether to come back: 4001 without a
    valid key, 4003 and 4004 where the conversation is not for this user, 1008 for an address that
    is wrong; 1012 where the gateway ends, 1013 for a slow reader and one client too many, 1011 for
    anything else.
    """
    await socket.accept()
    followers: Followers = find_gateway(socket).followers
    stack = AsyncExitStack()
    async with stack:
        try:
            to = await _find_conversation(socket)
            stack.enter_context(to.gateway.connections.hold(to.client.user_id))
            attachment = await stack.enter_async_context(
                followers.attach(
                    to.conversation, _parse_cursor(socket), credential_checks(to.caller)
                )
            )
        except (ClientError, StoreError, Refused) as error:
            await refuse(socket, to_error_frame(error), followers.limits.send_timeout)
            return
        await SocketSession(socket, to, attachment).run()


async def _find_conversation(socket: WebSocket) -> ConversationCall:
    """Find the conversation of the path for whoever asks. Raises Refused, ClientError."""
    caller = admit(find_gateway(socket), await authenticate(socket), "read")
    conversation_id = socket.path_params["conversation_id"]
    owner = socket.query_params.get("owner")
    if not re.fullmatch(CONVERSATION_PATTERN, conversation_id):
        raise NotFound.for_conversation(conversation_id[:100])
    if owner is not None and not re.fullmatch(USER_PATTERN, owner):
        raise Refused(422, "invalid", "The owner is not the id of a user.")
    return await address(caller, conversation_id, owner)


def _parse_cursor(socket: WebSocket) -> int:
    """Return the slot after which frames are sent. Raises Refused."""
    text = socket.query_params.get("after_seq", "-1")
    if re.fullmatch(r"-1|[0-9]{1,16}", text) and int(text) <= MAX_SEQ:
        return int(text)
    raise Refused(422, "invalid", "after_seq is not the number of a slot.")
