"""`/conversations`."""

from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from perdure.api.keys import Scope
from perdure.client.conversation import Conversation
from perdure.client.ids import new_conversation_id
from perdure.errors import NotFound
from perdure.gateway.deleting import delete_conversation
from perdure.gateway.openai.call import Call, open_call
from perdure.gateway.openai.errors import BadRequest
from perdure.gateway.openai.head import read_time
from perdure.gateway.openai.history import read_items
from perdure.gateway.openai.metadata import from_tags
from perdure.gateway.openai.paging import list_page
from perdure.gateway.openai.places import no_conversation, note_metadata
from perdure.gateway.openai.projections.ids import format_conversation_id, parse_conversation_id
from perdure.gateway.openai.requests import CreateConversation, UpdateConversation
from perdure.storage.foreign.openai_objects import ReservedConversation
from perdure.storage.log.state import read_state


async def create(request: Request) -> Response:
    """Make a conversation that begins with its first response, which names the agent."""
    call = await open_call(request, "write")
    body = await call.parse(CreateConversation)
    if body.items:
        detail = "A conversation begins with its first response: give it the items as `input`."
        raise BadRequest(detail, "items", "unsupported_parameter")
    name = new_conversation_id()
    reserved = ReservedConversation(created=datetime.now(UTC), metadata=body.metadata or {})
    await call.objects.save_reserved(name, reserved)
    return JSONResponse(_show_reserved(name, reserved))


async def get_conversation(request: Request) -> Response:
    _, conversation, reserved = await _open(request, "read")
    return JSONResponse(await _show(conversation, reserved))


async def update(request: Request) -> Response:
    """Replace the metadata."""
    call, conversation, reserved = await _open(request, "write")
    body = await call.parse(UpdateConversation)
    state = await read_state(conversation.log)
    if reserved is not None and state.next_seq == 0:
        reserved = reserved.model_copy(update={"metadata": body.metadata})
        await call.objects.save_reserved(conversation.id, reserved)
    else:
        await note_metadata(conversation, state, body.metadata)
    return JSONResponse(await _show(conversation, reserved))


async def delete(request: Request) -> Response:
    call, conversation, reserved = await _open(request, "write")
    if await conversation.exists():
        await delete_conversation(call.gateway, request, conversation)
    if reserved is not None:
        await call.objects.delete_reserved(conversation.id)
    name = format_conversation_id(conversation.id)
    return JSONResponse({"id": name, "object": "conversation.deleted", "deleted": True})


async def list_items(request: Request) -> Response:
    _, conversation, _ = await _open(request, "read")
    return JSONResponse(list_page(request, await read_items(conversation.log, "mcp_call")))


async def get_item(request: Request) -> Response:
    _, conversation, _ = await _open(request, "read")
    for item in await read_items(conversation.log, "mcp_call"):
        if item["id"] == request.path_params["item_id"]:
            return JSONResponse(item)
    raise NotFound("The conversation has no such item.")


async def _open(
    request: Request, scope: Scope
) -> tuple[Call, Conversation, ReservedConversation | None]:
    """Return the conversation of the path, and how it was made. Raises NotFound."""
    call = await open_call(request, scope)
    text: str = request.path_params["conversation_id"]
    if (name := parse_conversation_id(text)) is None:
        raise no_conversation(text)
    conversation = await call.address(name)
    reserved = await call.objects.load_reserved(name)
    if reserved is None and not await conversation.exists():
        raise no_conversation(text)
    return call, conversation, reserved


async def _show(
    conversation: Conversation, reserved: ReservedConversation | None
) -> dict[str, Any]:
    state = await read_state(conversation.log)
    if state.next_seq == 0 and reserved is not None:
        return _show_reserved(conversation.id, reserved)
    first = await conversation.log.find(0)
    tags = state.spec.tags if state.spec is not None else ()
    created = datetime.now(UTC).timestamp() if first is None else read_time(first)
    return _show_conversation(conversation.id, created, from_tags(tags))


def _show_reserved(name: str, reserved: ReservedConversation) -> dict[str, Any]:
    return _show_conversation(name, reserved.created.timestamp(), reserved.metadata)


def _show_conversation(name: str, created: float, metadata: dict[str, str]) -> dict[str, Any]:
    return {
        "id": format_conversation_id(name),
        "object": "conversation",
        "created_at": int(created),
        "metadata": metadata,
    }


ROUTES = [
    Route("/conversations", create, methods=["POST"]),
    Route("/conversations/{conversation_id}", get_conversation, methods=["GET"]),
    Route("/conversations/{conversation_id}", update, methods=["POST"]),
    Route("/conversations/{conversation_id}", delete, methods=["DELETE"]),
    Route("/conversations/{conversation_id}/items", list_items, methods=["GET"]),
    Route("/conversations/{conversation_id}/items/{item_id}", get_item, methods=["GET"]),
]
