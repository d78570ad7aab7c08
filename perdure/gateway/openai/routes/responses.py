"""`/responses`."""

import asyncio
from collections.abc import Callable, Sequence
from time import time
from typing import Any, cast
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from perdure.client.conversation import Conversation
from perdure.gateway.deleting import delete_conversation
from perdure.gateway.openai.begin import StartOptions, begin
from perdure.gateway.openai.call import Call, identify_request, open_call
from perdure.gateway.openai.chats import CHAT_HEADER, find_chat, is_task, own_metadata
from perdure.gateway.openai.chats import find_place as find_chat_place
from perdure.gateway.openai.closing import Closing
from perdure.gateway.openai.errors import BadRequest
from perdure.gateway.openai.head import is_newest, no_response, read_head, read_parts
from perdure.gateway.openai.history import read_input_items
from perdure.gateway.openai.metadata import to_tags
from perdure.gateway.openai.paging import list_page
from perdure.gateway.openai.places import find_place
from perdure.gateway.openai.projections.ids import ResponseId, parse_response_id
from perdure.gateway.openai.projections.items import ToolItems
from perdure.gateway.openai.projections.response import Event, Head, ResponseProjection
from perdure.gateway.openai.requests import (
    CreateResponse,
    ParsedInput,
    parse_turn,
    refuse_unsupported,
)
from perdure.gateway.openai.streams import await_turn, encode_event, stream_turn
from perdure.gateway.openai.tasks import answer_task
from perdure.gateway.turns.parts import Ended, Part

TOOL_ITEMS_HEADER = "x-perdure-tool-items"

CANCEL_SECONDS = 10.0
"""Seconds within which an interrupted turn has mostly ended."""


def response_routes(closing: Closing) -> list[Route]:
    """Return the routes of responses."""

    async def create(request: Request) -> Response:
        call = await open_call(request, "write")
        body = await call.parse(CreateResponse)
        refuse_unsupported(body)
        tool_items = _choose_tool_items(request)
        if _is_task(call, body) and (said := await answer_task(call, body)) is not None:
            return _answer_task(body, said)
        response_id = await _begin(call, body)
        key = call.turn_key(response_id.conversation_id, response_id.seq)
        if _is_hidden(call, body):
            closing.close_after(key)
        projection = await _project(call, response_id, tool_items)
        headers = {CHAT_HEADER: response_id.conversation_id}
        if body.stream:
            return stream_turn(call, key, projection, encode_event, headers=headers)
        if not body.background:
            await await_turn(call, key, projection)
        return JSONResponse(projection.response(), headers=headers)

    one = "/responses/{response_id}"
    return [
        Route("/responses", create, methods=["POST"]),
        Route(one, get_response, methods=["GET"]),
        Route(one, delete_response, methods=["DELETE"]),
        Route(f"{one}/cancel", cancel_response, methods=["POST"]),
        Route(f"{one}/input_items", list_input_items, methods=["GET"]),
    ]


async def get_response(request: Request) -> Response:
    """Show a response as it is now, or stream it from the event after `starting_after`."""
    call, response_id, conversation = await _open(request, "read")
    projection = await _project(call, response_id, _choose_tool_items(request))
    if request.query_params.get("stream") == "true":
        key = call.turn_key(conversation.id, response_id.seq)
        skip = _skip_until(_parse_number(request))
        return stream_turn(call, key, projection, encode_event, skip=skip)
    await _take_parts(conversation, response_id, projection)
    return JSONResponse(projection.response())


async def cancel_response(request: Request) -> Response:
    """Interrupt a turn that runs; one that has ended stays as it is."""
    call, response_id, conversation = await _open(request, "write")
    projection = await _project(call, response_id, _choose_tool_items(request))
    parts, _ = await read_parts(conversation.log, response_id.seq)
    if not (parts and isinstance(parts[-1], Ended)):
        await conversation.interrupt()
        call.gateway.followers.hint(call.user_id, conversation.id)
        key = call.turn_key(conversation.id, response_id.seq)
        try:
            async with asyncio.timeout(CANCEL_SECONDS):
                await await_turn(call, key, projection)
            return JSONResponse(projection.response())
        except TimeoutError:
            projection = await _project(call, response_id, projection.tool_items)
    await _take_parts(conversation, response_id, projection)
    return JSONResponse(projection.response())


async def delete_response(request: Request) -> Response:
    """Delete a response together with its conversation, if that has no other one."""
    call, response_id, conversation = await _open(request, "write")
    await read_head(conversation.log, response_id)
    _, state = await read_parts(conversation.log, response_id.seq)
    if state.turn > 1 or not await is_newest(conversation.log, state):
        detail = "The conversation has other responses, which follow from each other: delete it."
        raise BadRequest(detail, "response_id", "response_in_use")
    await delete_conversation(call.gateway, call.request, conversation)
    body = {"id": str(response_id), "object": "response.deleted", "deleted": True}
    return JSONResponse(body)


async def list_input_items(request: Request) -> Response:
    _, response_id, conversation = await _open(request, "read")
    await read_head(conversation.log, response_id)
    items = await read_input_items(conversation.log, response_id.seq)
    return JSONResponse(list_page(request, items))


async def _begin(call: Call, body: CreateResponse) -> ResponseId:
    said = parse_turn(body)
    tags, hidden = to_tags(own_metadata(body)), _is_hidden(call, body)
    options = StartOptions(body.model, said.instructions, tags, hidden)
    key = await identify_request(call.request)
    find = find_chat_place if _is_of_chat(call, body, said) else find_place
    return await begin(call, key, options, lambda: find(call, body, said))


def _is_of_chat(call: Call, body: CreateResponse, said: ParsedInput) -> bool:
    """Tell whether a chat UI sends a chat by its name, with all that was said in it.

    What names a conversation or a response goes on there, whatever its headers say.
    """
    return not (_goes_on(body) or said.approvals) and find_chat(call, body) is not None


def _is_task(call: Call, body: CreateResponse) -> bool:
    return is_task(call.request) and not _goes_on(body)


def _goes_on(body: CreateResponse) -> bool:
    return body.conversation is not None or body.previous_response_id is not None


def _is_hidden(call: Call, body: CreateResponse) -> bool:
    return body.store is False or _is_task(call, body)


def _answer_task(body: CreateResponse, said: Sequence[Part]) -> Response:
    head = Head(f"resp_{uuid4().hex}_0", time(), body.model)
    projection = ResponseProjection(head)
    events = [*projection.begin(), *(event for part in said for event in projection.take(part))]
    if not body.stream:
        return JSONResponse(projection.response())
    stream = b"".join(map(encode_event, events))
    return Response(stream, media_type="text/event-stream")


async def _open(request: Request, scope: Any) -> tuple[Call, ResponseId, Conversation]:
    """Return the response of the path, with its conversation. Raises NotFound."""
    call = await open_call(request, scope)
    response_id = parse_response_id(request.path_params["response_id"])
    if response_id is None:
        raise no_response(request.path_params["response_id"][:80])
    return call, response_id, await call.address(response_id.conversation_id)


async def _project(
    call: Call, response_id: ResponseId, tool_items: ToolItems
) -> ResponseProjection:
    conversation = await call.address(response_id.conversation_id)
    return ResponseProjection(await read_head(conversation.log, response_id), tool_items)


async def _take_parts(
    conversation: Conversation, response_id: ResponseId, projection: ResponseProjection
) -> None:
    """Let a projection take the parts that the log has by now."""
    parts, _ = await read_parts(conversation.log, response_id.seq)
    for part in parts:
        projection.take(part)


def _choose_tool_items(request: Request) -> ToolItems:
    """Return the items that tools are shown as. Raises BadRequest."""
    kind = request.headers.get(TOOL_ITEMS_HEADER, "mcp_call")
    if kind not in ("mcp_call", "function_call"):
        raise BadRequest(f"{TOOL_ITEMS_HEADER} is `mcp_call` or `function_call`.")
    return cast("ToolItems", kind)


def _parse_number(request: Request) -> int:
    text = request.query_params.get("starting_after", "-1")
    try:
        return int(text[:20])
    except ValueError:
        detail = "`starting_after` is the number of an event."
        raise BadRequest(detail, "starting_after") from None


def _skip_until(number: int) -> Callable[[Event], bool]:
    return lambda event: event.get("sequence_number", number + 1) <= number
