"""Grants to other users, and what others share with the user."""

from typing import Annotated, TypeAlias

from fastapi import APIRouter, Query, Request

from perdure.api.batches import Batches as BatchList
from perdure.api.conversations import Grant, Grants, Page, ShareConversation
from perdure.api.discussions import Discussions as DiscussionList
from perdure.client.batch.batches import Batches
from perdure.client.batch.handle import BatchHandle
from perdure.client.conversation import Conversation
from perdure.client.discussion.discussions import Discussions
from perdure.client.discussion.handle import DiscussionHandle
from perdure.gateway import batch_calls, discussion_calls
from perdure.gateway.callers import Caller, Reader, ToRead, ToWrite, UserId, find_gateway
from perdure.gateway.edge.audit import audit
from perdure.gateway.views.batches import show_all
from perdure.gateway.views.discussions import show_all as show_discussions
from perdure.gateway.views.list_filter import Wanted
from perdure.storage.grants import Kind
from perdure.storage.shared import Shared, list_marked, walk_shared

router = APIRouter(prefix="/v1", tags=["sharing"])

CONVERSATION = "/conversations/{conversation_id}/grants"
BATCH = "/batches/{name}/grants"
DISCUSSION = "/discussions/{session_id}/grants"

SharedThing: TypeAlias = Conversation | BatchHandle | DiscussionHandle


@router.get(CONVERSATION)
async def list_grants(to: ToRead) -> Grants:
    """List the users who may read or steer the conversation; only its own user may."""
    return await _list(to.conversation)


@router.put(CONVERSATION + "/{user_id}")
async def grant(request: Request, user_id: UserId, body: ShareConversation, to: ToWrite) -> Grant:
    """Let another user read the conversation, or also steer it."""
    return await _grant(request, to.conversation, user_id, body)


@router.delete(CONVERSATION + "/{user_id}", status_code=204)
async def revoke(request: Request, user_id: UserId, to: ToWrite) -> None:
    """Take the grant of a user back, at once."""
    await _revoke(request, to.conversation, user_id)


@router.get(BATCH)
async def list_batch_grants(batch: batch_calls.ToRead) -> Grants:
    """List the users who may read or steer the batch; only its own user may."""
    return await _list(batch)


@router.put(BATCH + "/{user_id}")
async def grant_batch(
    request: Request, user_id: UserId, body: ShareConversation, batch: batch_calls.ToWrite
) -> Grant:
    """Let another user read the batch and its conversations, or also steer the batch."""
    return await _grant(request, batch, user_id, body)


@router.delete(BATCH + "/{user_id}", status_code=204)
async def revoke_batch(request: Request, user_id: UserId, batch: batch_calls.ToWrite) -> None:
    """Take the grant of a user back, at once."""
    await _revoke(request, batch, user_id)


@router.get(DISCUSSION)
async def list_discussion_grants(discussion: discussion_calls.ToRead) -> Grants:
    """List the users who may read or steer the discussion; only its own user may."""
    return await _list(discussion)


@router.put(DISCUSSION + "/{user_id}")
async def grant_discussion(
    request: Request,
    user_id: UserId,
    body: ShareConversation,
    discussion: discussion_calls.ToWrite,
) -> Grant:
    """Let another user read the discussion and its conversations, or also take part in it."""
    return await _grant(request, discussion, user_id, body)


@router.delete(DISCUSSION + "/{user_id}", status_code=204)
async def revoke_discussion(
    request: Request, user_id: UserId, discussion: discussion_calls.ToWrite
) -> None:
    """Take the grant of a user back, at once."""
    await _revoke(request, discussion, user_id)


@router.get("/shared")
async def list_shared(
    caller: Reader,
    wanted: Wanted,
    limit: Annotated[int, Query(ge=1, le=100)] = 50,
    cursor: Annotated[str | None, Query(max_length=500)] = None,
) -> Page:
    """List the conversations that others share with the user, the newest first."""
    return await caller.gateway.lists.read_shared(caller.client.user_id, limit, cursor, wanted)


@router.get("/shared/batches")
async def list_shared_batches(
    caller: Reader,
    limit: Annotated[int, Query(ge=1, le=100)] = 50,
    cursor: Annotated[str | None, Query(max_length=400)] = None,
) -> BatchList:
    """List the batches that others share with the user, by name."""
    batches = Batches.from_client(caller.client)
    shared, following = await _read_shared(caller, "batch", limit, cursor)
    items = await show_all(batches.batch(it.id, it.owner) for it in shared)
    return BatchList(items=tuple(items), next_cursor=following)


@router.get("/shared/discussions")
async def list_shared_discussions(
    caller: Reader,
    limit: Annotated[int, Query(ge=1, le=100)] = 50,
    cursor: Annotated[str | None, Query(max_length=400)] = None,
) -> DiscussionList:
    """List the discussions that others share with the user, by id."""
    discussions = Discussions.from_client(caller.client)
    shared, following = await _read_shared(caller, "discussion", limit, cursor)
    items = await show_discussions(discussions.get(it.id, it.owner) for it in shared)
    return DiscussionList(items=tuple(items), next_cursor=following)


async def _read_shared(
    caller: Caller, kind: Kind, limit: int, cursor: str | None
) -> tuple[list[Shared], str | None]:
    """Read a page of what others share, and the cursor of the next one."""
    client = caller.client
    marked = await list_marked(client.store, client.user_id, kind)
    marked = [it for it in marked if cursor is None or f"{it.id}/{it.owner}" > cursor]
    shared: list[Shared] = []
    async for found in walk_shared(client.store, client.user_id, marked):
        if len(shared) == limit:
            return shared, f"{shared[-1].id}/{shared[-1].owner}"
        shared.append(found)
    return shared, None


async def _list(shared: SharedThing) -> Grants:
    grants = await shared.grants()
    return Grants(items=tuple(Grant(**grant.model_dump()) for grant in grants))


async def _grant(
    request: Request, shared: SharedThing, user_id: str, body: ShareConversation
) -> Grant:
    await shared.grant(user_id, body.access)
    audit(request, "grant", to=user_id, access=body.access)
    return Grant(user_id=user_id, access=body.access)


async def _revoke(request: Request, shared: SharedThing, user_id: str) -> None:
    await shared.revoke(user_id)
    gateway = find_gateway(request)
    gateway.followers.check_grants(user_id)
    gateway.discussions.check_grants(user_id)
    audit(request, "revoke", of=user_id)
