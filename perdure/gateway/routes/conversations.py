"""Conversations: start, show, list and hide them."""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from perdure.api.conversations import Conversation, Note, Page, Start
from perdure.client.ids import derive_conversation_id, derive_message_id
from perdure.client.lists.lists import ListOrder
from perdure.errors import Invalid
from perdure.gateway.agents.own_secrets import agent_user, list_own_secrets
from perdure.gateway.callers import Reader, ToRead, ToWrite, Writer
from perdure.gateway.deleting import delete_conversation as delete
from perdure.gateway.views.idempotency import IdempotencyKey
from perdure.gateway.views.list_filter import Wanted

router = APIRouter(prefix="/v1/conversations", tags=["conversations"])


@router.post("", status_code=201, responses={200: {"model": Conversation}})
async def start_conversation(
    body: Start, caller: Writer, response: Response, idempotency_key: IdempotencyKey = None
) -> Conversation:
    """Start a conversation; Temporal has it when the answer comes.

    The answer is 200 where the conversation was there already.
    """
    gateway, client = caller.gateway, caller.client
    gateway.agents.policy.check_images(body.images)
    agent = await gateway.agents.choose(agent_user(client), body.agent, body.model)
    agent = gateway.agents.apply(agent, body, await list_own_secrets(client, agent, body))
    if body.tags:
        agent = agent.model_copy(update={"tags": body.tags})
    name, message_id = body.conversation_id, body.message_id
    if idempotency_key is not None:
        name = name or derive_conversation_id(client.user_id, idempotency_key)
        message_id = message_id or derive_message_id(client.user_id, idempotency_key)
    if name is not None:
        await gateway.hidden.require_visible(client.user_id, name, name)
    exists = name is not None and await client.conversation(name).exists()
    title = None if exists else body.title
    conversation = await client.start(
        body.text, agent, name, message_id, body.images, title, body.replay
    )
    response.status_code = 200 if exists else 201
    response.headers["Location"] = f"/v1/conversations/{conversation.id}"
    return await conversation.describe(with_state=False)


@router.get("")
async def list_conversations(
    caller: Reader,
    wanted: Wanted,
    limit: Annotated[int, Query(ge=1, le=100)] = 50,
    cursor: Annotated[str | None, Query(max_length=500)] = None,
    prefix: Annotated[str, Query(pattern="^[0-9a-f-]{0,36}$")] = "",
    order: ListOrder = "activity",
) -> Page:
    """List the conversations of the user, those that were last at work first.

    `text` has words of titles, `prefix` is the beginning of an id, `app` the name of an
    application. `active` leaves out those that are closed; `hidden` lists also those whose start
    says that lists leave them out. With the order `created` the newest come first.
    """
    wanted = replace(wanted, prefix=prefix)
    return await caller.gateway.lists.read_page(caller.client, limit, cursor, wanted, order)


@router.delete("/{conversation_id}", status_code=204)
async def delete_conversation(request: Request, to: ToWrite) -> None:
    """Close a conversation and hide it; the store keeps its log."""
    await delete(to.gateway, request, to.conversation)


@router.get("/{conversation_id}")
async def get_conversation(to: ToRead, with_state: bool = False) -> Conversation:
    """Show a conversation with its status, and `with_state` the values of its session state."""
    return await to.conversation.describe(with_state)


@router.patch("/{conversation_id}")
async def note(body: Note, to: ToWrite) -> Conversation:
    """Change the title, the tags (which replace the earlier ones) or values of the conversation."""
    if body.title is None and body.tags is None and body.state is None:
        raise Invalid("There is nothing to note.", "Give a `title`, `tags` or a `state`.")
    await to.conversation.note(body.title, body.tags, body.state, body.versions)
    return await to.conversation.describe(with_state=False)
