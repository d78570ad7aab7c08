"""What is read of a conversation besides its events: the end of a turn, values, an export."""

import asyncio
from functools import partial
from typing import Annotated, Any, TypeAlias

from fastapi import APIRouter, Query, Request, Response

from perdure.agent.loop.state import State
from perdure.api.conversations import Turn, Values
from perdure.client.conversation import Conversation
from perdure.client.outage import check_workflow
from perdure.client.patience import Outage
from perdure.client.turn import Turn as FollowedTurn
from perdure.client.turn import read_newest_state
from perdure.gateway.callers import COSTLY, ToRead
from perdure.gateway.views.conversations import require_conversation
from perdure.gateway.views.downloads import (
    BYTES,
    MEDIA_TYPES,
    export_conversation,
    find_named_format,
)
from perdure.storage.log.state import read_answer, read_state

router = APIRouter(prefix="/v1/conversations/{conversation_id}", tags=["conversations"])

MAX_WAIT = 60.0
"""Seconds for which the end of a turn is awaited: proxies end requests that take longer."""

EXPORT_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"content": {kind: {} for kind in (BYTES, *MEDIA_TYPES.values())}}
}


TurnView: TypeAlias = tuple[int, State, bool]
"""The slot before a turn, the state, and whether the turn is over."""


@router.get("/turn")
async def await_turn(
    request: Request,
    to: ToRead,
    message_id: Annotated[str | None, Query(max_length=128)] = None,
    after_seq: Annotated[int | None, Query(ge=-1, le=2**53)] = None,
    wait: Annotated[float, Query(ge=0, le=MAX_WAIT)] = 30.0,
) -> Turn:
    """Wait for the end of a turn for at most `wait` seconds.

    It is the turn of the message `message_id`, and has an event after slot `after_seq`; without
    either, that of the newest message.
    """
    conversation = to.conversation
    await require_conversation(conversation)
    with to.gateway.connections.hold(to.client.user_id):
        ending = asyncio.create_task(_await_end(conversation, message_id, after_seq))
        leaving = asyncio.create_task(_await_disconnect(request))
        try:
            await asyncio.wait({ending, leaving}, timeout=wait, return_when="FIRST_COMPLETED")
            ended = await ending if ending.done() else None
        finally:
            ending.cancel()
            leaving.cancel()
    after, state, is_over = ended or await _look_at_turn(conversation, message_id, after_seq)
    return await _show_turn(conversation, after, state, is_over)


async def _look_at_turn(
    conversation: Conversation, message_id: str | None, after_seq: int | None
) -> TurnView:
    """Look at a turn that was not seen to end: it may have, before anybody waited."""
    state = await read_state(conversation.log)
    after = after_seq
    if after is None:
        after = -1 if message_id is not None else max(-1, state.last_user_seq - 1)
    turn = _follow_turn(conversation, message_id, after)
    return after, state, await turn.has_ended(state)


async def _await_end(
    conversation: Conversation, message_id: str | None, after_seq: int | None
) -> TurnView:
    """Wait for the end of a turn."""
    after = -1 if after_seq is None else after_seq
    if message_id is None and after_seq is None:
        after = await _find_newest_turn(conversation)
    return after, await _follow_turn(conversation, message_id, after).end(), True


async def _await_disconnect(request: Request) -> None:
    """Wait until the client leaves: nobody waits for the turn then."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _follow_turn(conversation: Conversation, message_id: str | None, after: int) -> FollowedTurn:
    workflow = conversation.workflow
    check = partial(check_workflow, workflow, Outage())
    return FollowedTurn(conversation.log, message_id, after, check, workflow.has_news)


async def _find_newest_turn(conversation: Conversation) -> int:
    """Return the slot before the newest message, once it is in the log."""
    state = await read_newest_state(conversation.log, conversation.workflow.has_news)
    return max(-1, state.last_user_seq - 1)


async def _show_turn(conversation: Conversation, after: int, state: State, is_over: bool) -> Turn:
    return Turn(
        conversation_id=conversation.id,
        ended=is_over,
        after_seq=after,
        status=state.status,
        reason=state.reason,
        text=await read_answer(conversation.log, state) if is_over else "",
        usage=state.usage,
    )


@router.get("/values")
async def get_values(to: ToRead) -> Values:
    """Read the values that are noted of the conversation, and those that it shares."""
    await require_conversation(to.conversation)
    found = await to.conversation.read_values()
    return Values(values=found.values, versions=found.versions)


@router.get("/export", response_class=Response, responses=EXPORT_RESPONSES, dependencies=COSTLY)
async def export(
    to: ToRead, format: Annotated[str, Query(min_length=1, max_length=64)] = "raw"
) -> Response:
    """Export the conversation in a format of `perdure export`; a folder comes as a zip archive.

    The header `X-Unreadable-Events` counts events that are damaged and left out.
    """
    made = find_named_format(format)
    await require_conversation(to.conversation)
    return await export_conversation(to.conversation.log, made)
