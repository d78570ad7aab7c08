"""`/chat/completions`."""

from collections.abc import Callable, Sequence
from time import time
from uuid import UUID, uuid4

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from perdure.gateway.openai.begin import StartOptions, begin
from perdure.gateway.openai.call import Call, identify_request, open_call
from perdure.gateway.openai.chats import (
    CHAT_HEADER,
    find_chat,
    find_place,
    is_task,
    own_metadata,
)
from perdure.gateway.openai.closing import Closing
from perdure.gateway.openai.errors import error_response, format_error
from perdure.gateway.openai.head import read_head
from perdure.gateway.openai.metadata import to_tags
from perdure.gateway.openai.projections.chat import ChatHead, ChatProjection
from perdure.gateway.openai.projections.ids import ResponseId
from perdure.gateway.openai.requests import (
    CreateChatCompletion,
    parse_turn,
    refuse_unsupported,
)
from perdure.gateway.openai.streams import DONE, await_turn, stream_turn
from perdure.gateway.openai.tasks import answer_task
from perdure.gateway.turn_streams import encode_data
from perdure.gateway.turns.parts import Part

SUSPENDED = "too_many_conversations"
"""The code of a turn that was suspended, as its user had too many at work."""


def chat_routes(closing: Closing) -> list[Route]:
    """Return the route of chat completions."""

    async def create(request: Request) -> Response:
        call = await open_call(request, "write")
        body = await call.parse(CreateChatCompletion)
        if is_task(request) and (text := await answer_task(call, body)) is not None:
            return _answer_task(body, text)
        response_id = await _begin(call, body)
        key = call.turn_key(response_id.conversation_id, response_id.seq)
        if find_chat(call, body) is None or is_task(request):
            closing.close_after(key)
        options = body.stream_options
        with_usage = options is not None and bool(options.include_usage)
        projection = ChatProjection(await _read_chat_head(call, response_id), with_usage)
        headers = {CHAT_HEADER: response_id.conversation_id}
        if body.stream:
            end = _end_of(projection)
            return stream_turn(call, key, projection, encode_data, end=end, headers=headers)
        await await_turn(call, key, projection)
        return _answer(projection, headers)

    return [Route("/chat/completions", create, methods=["POST"])]


async def _begin(call: Call, body: CreateChatCompletion) -> ResponseId:
    refuse_unsupported(body)
    said = parse_turn(body)
    hidden = is_task(call.request)
    options = StartOptions(body.model, said.instructions, to_tags(own_metadata(body)), hidden)
    key = await identify_request(call.request)
    return await begin(call, key, options, lambda: find_place(call, body, said))


async def _read_chat_head(call: Call, response_id: ResponseId) -> ChatHead:
    conversation = await call.address(response_id.conversation_id)
    head = await read_head(conversation.log, response_id)
    name = f"chatcmpl-{UUID(conversation.id).hex}_{response_id.seq}"
    site = call.gateway.settings.gateway_url or str(call.request.base_url.replace(path=""))
    page = f"{site.rstrip('/')}/conversations/{conversation.id}"
    return ChatHead(name, int(head.created_at), head.model, page)


def _answer_task(body: CreateChatCompletion, said: Sequence[Part]) -> Response:
    head = ChatHead(f"chatcmpl-{uuid4().hex}", int(time()), body.model, "")
    projection = ChatProjection(head)
    chunks = [*projection.begin(), *(chunk for part in said for chunk in projection.take(part))]
    if not body.stream:
        return JSONResponse(projection.completion())
    stream = b"".join([*map(encode_data, chunks), DONE])
    return Response(stream, media_type="text/event-stream")


def _end_of(projection: ChatProjection) -> Callable[[], list[bytes]]:
    def end() -> list[bytes]:
        if (failure := projection.failure) is None:
            return [DONE]
        return [encode_data(format_error(500, failure.code, failure.detail)), DONE]

    return end


def _answer(projection: ChatProjection, headers: dict[str, str]) -> Response:
    if (failure := projection.failure) is None:
        return JSONResponse(projection.completion(), headers=headers)
    # The turn has failed for good: the same request again would fail again, at the same cost.
    headers = {**headers, "x-should-retry": "false"}
    status = 429 if failure.code == SUSPENDED else 500
    return error_response(status, failure.code, failure.detail, headers=headers)
