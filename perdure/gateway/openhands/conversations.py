"""Routes of OpenHands' client: start, show, list, change, fork and delete conversations."""

import asyncio
from contextlib import suppress
from typing import Annotated, Literal

from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from perdure.agent.loop.state import State
from perdure.agent.spec import Agent
from perdure.client.conversation import Conversation
from perdure.client.fork import fork as fork_conversation
from perdure.client.ids import new_conversation_id
from perdure.client.lists.lists import ListFilter, ListOrder
from perdure.client.preparation import prepare_start
from perdure.errors import Invalid, NotFound
from perdure.events.base import Tolerant
from perdure.gateway.callers import Caller
from perdure.gateway.deleting import delete_conversation as delete
from perdure.gateway.edge.audit import audit
from perdure.gateway.openhands.addressing import find_call, find_caller, make_call
from perdure.gateway.openhands.answers import answer, parse, read_body, refuse
from perdure.gateway.openhands.bodies import ChangeBody, ForkBody, JsonObject, StartBody
from perdure.gateway.openhands.control import send, take_secrets
from perdure.gateway.openhands.conversation import Call
from perdure.gateway.openhands.info import info_of
from perdure.gateway.openhands.record import make_record, store_record
from perdure.gateway.openhands.start import choose_agent, join_tags
from perdure.gateway.openhands.waiting import wait_for_record
from perdure.storage.log.state import read_state


async def start_conversation(request: Request) -> Response:
    """Start a conversation, or show the one that has this id already."""
    caller = await find_caller(request, "write")
    body = await read_body(request, StartBody)
    name = str(body.conversation_id or new_conversation_id())
    client = caller.client
    if body.conversation_id is not None and await client.conversation(name).exists():
        return await _show_again(request, caller, name)
    agent = await choose_agent(caller.gateway, client, body)
    secrets = await take_secrets(caller, body.secrets)
    agent = agent.model_copy(update={"secrets": (*agent.secrets, *secrets)})
    await _begin(client.conversation(name), agent, body)
    audit(request, "openhands.start")
    call = await make_call(request, caller, name)
    if body.initial_message is not None:
        await send(call, body.initial_message, f"initial-{name}")
    return JSONResponse(await describe(call), 201)


async def _begin(conversation: Conversation, agent: Agent, body: StartBody) -> None:
    """Start the workflow, and wait until its log has begun. Raises TimedOut without a worker."""
    spec, _ = await prepare_start(conversation.log, agent, None, None, (), None)
    note = await store_record(conversation.log, make_record(body))
    await conversation.workflow.begin(spec, (note,))
    await wait_for_record(conversation.log)


async def _show_again(request: Request, caller: Caller, name: str) -> Response:
    """Show a conversation that is there; one that was deleted comes back with its whole log."""
    await caller.gateway.hidden.show(caller.client.user_id, name)
    return JSONResponse(await describe(await make_call(request, caller, name)), 200)


async def describe(call: Call, state: State | None = None) -> JsonObject:
    """Return a conversation as a `ConversationInfo`. Raises StoreError."""
    state = state if state is not None else await read_state(call.log)
    return info_of(state, await call.facts(state))


async def show_conversation(request: Request) -> Response:
    """Show a conversation; a client that waits for the end of a run asks so."""
    call = await find_call(request, "read")
    state = await read_state(call.log)
    if state.at_rest:
        call.door.runs.note_question(call.key)
    return JSONResponse(await describe(call, state))


async def change_conversation(request: Request) -> Response:
    """Change the title and the tags of a conversation."""
    call = await find_call(request, "write")
    body = await read_body(request, ChangeBody)
    tags = None if body.tags is None else join_tags(body.tags)
    if body.title is not None or tags is not None:
        await call.to.conversation.note(body.title, tags)
    return answer()


async def delete_conversation(request: Request) -> Response:
    """Close a conversation and hide it; the store keeps its log."""
    call = await find_call(request, "write")
    await delete(call.to.gateway, request, call.to.conversation)
    return answer()


async def fork(request: Request) -> Response:
    """Make a conversation that begins with the events of another one, up to one of them."""
    call = await find_call(request, "write")
    body = await read_body(request, ForkBody)
    client, at = call.to.client, None
    name = str(body.id or new_conversation_id())
    if body.id is not None and await client.conversation(name).exists():
        raise refuse(409, f"There is a conversation {name} already.")
    if body.from_event_id is not None:
        at = await call.door.pages.find_seq(call.log, call.native, body.from_event_id)
        if at is None:
            raise refuse(404, "The conversation has no event of this id.")
    await fork_conversation(client, call.to.id, at, fork_id=name, resets_usage=body.reset_metrics)
    made = await make_call(request, call.to.caller, name)
    tags = None if body.tags is None else join_tags(body.tags)
    if body.title is not None or tags is not None:
        await made.to.conversation.note(body.title, tags)
    return JSONResponse(await describe(made), 201)


class ListQuery(Tolerant):
    """The query of `GET /api/conversations/search`."""

    page_id: Annotated[str, Field(max_length=500)] | None = None
    limit: Annotated[int, Field(ge=1, le=100)] = 100
    status: str | None = None
    sort_order: Literal["CREATED_AT", "CREATED_AT_DESC", "UPDATED_AT", "UPDATED_AT_DESC"] = (
        "CREATED_AT_DESC"
    )


async def search_conversations(request: Request) -> Response:
    """List the conversations of the user, page by page."""
    caller = await find_caller(request, "read")
    wanted = parse(ListQuery, dict(request.query_params), "query")
    order: ListOrder = "created" if wanted.sort_order.startswith("CREATED") else "activity"
    page = await caller.gateway.lists.read_page(
        caller.client, wanted.limit, wanted.page_id, ListFilter(status=wanted.status), order
    )
    items = await _describe_all(request, caller, [item.id for item in page.items])
    shown = [item for item in items if item is not None]
    if not wanted.sort_order.endswith("DESC"):
        shown.reverse()
    return JSONResponse({"items": shown, "next_page_id": page.next_cursor})


async def list_conversations(request: Request) -> Response:
    """Show the conversations of some ids; null for one that there is not."""
    caller = await find_caller(request, "read")
    ids = request.query_params.getlist("ids")[:100]
    return JSONResponse(await _describe_all(request, caller, ids))


async def _describe_all(
    request: Request, caller: Caller, ids: list[str]
) -> list[JsonObject | None]:
    async def show(name: str) -> JsonObject | None:
        with suppress(NotFound, Invalid):
            return await describe(await make_call(request, caller, name))
        return None

    return list(await asyncio.gather(*map(show, ids)))


async def count_conversations(request: Request) -> Response:
    """Count the conversations of the user, or those with a status."""
    caller = await find_caller(request, "read")
    wanted = ListFilter(status=request.query_params.get("status"))
    total, cursor, more = 0, None, True
    while more:
        page = await caller.gateway.lists.read_page(caller.client, 100, cursor, wanted, "created")
        total, cursor = total + len(page.items), page.next_cursor
        more = cursor is not None
    return JSONResponse(total)


ROUTES = [
    Route("/api/conversations", start_conversation, methods=["POST"]),
    Route("/api/conversations", list_conversations, methods=["GET"]),
    Route("/api/conversations/search", search_conversations, methods=["GET"]),
    Route("/api/conversations/count", count_conversations, methods=["GET"]),
    Route("/api/conversations/{conversation_id}", show_conversation, methods=["GET"]),
    Route("/api/conversations/{conversation_id}", change_conversation, methods=["PATCH"]),
    Route("/api/conversations/{conversation_id}", delete_conversation, methods=["DELETE"]),
    Route("/api/conversations/{conversation_id}/fork", fork, methods=["POST"]),
]
