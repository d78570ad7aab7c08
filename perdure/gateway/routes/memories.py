"""The memories of a user."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request

from perdure.api.memories import (
    FoundMemories,
    Ingested,
    Memory,
    MemoryPage,
    MemorySource,
    PutMemory,
    Reindexed,
    SearchMemories,
)
from perdure.client.access import require_owner
from perdure.client.memory.memories import Memories
from perdure.client.memory.protocol import build_filter
from perdure.gateway.callers import (
    CONVERSATION_PATTERN,
    COSTLY,
    Caller,
    Reader,
    ToWrite,
    Writer,
)
from perdure.gateway.edge.audit import audit

router = APIRouter(prefix="/v1", tags=["memories"])

MemoryId = Annotated[str, Path(pattern=CONVERSATION_PATTERN)]


def memories_of(caller: Caller) -> Memories:
    """Return the memories of the user of a request, and of nobody else."""
    return Memories(caller.gateway.memories.of_user(caller.client.user_id))


@router.get("/memories")
async def list_memories(
    caller: Reader,
    limit: Annotated[int, Query(ge=1, le=100)] = 50,
    cursor: Annotated[str | None, Query(pattern=CONVERSATION_PATTERN)] = None,
    app: Annotated[str | None, Query(max_length=255)] = None,
    tag: Annotated[list[str], Query(max_length=32)] = [],  # noqa: B006 - FastAPI copies it
    source: MemorySource | None = None,
    conversation_id: Annotated[str | None, Query(max_length=64)] = None,
) -> MemoryPage:
    """List memories of the user in the order of their ids."""
    only = build_filter(app=app, tags=tuple(tag), source=source, conversation_id=conversation_id)
    items = await memories_of(caller).list_memories(limit, cursor or "", only)
    following = items[-1].id if len(items) == limit else None
    return MemoryPage(items=tuple(items), next_cursor=following)


@router.post("/memories", status_code=201)
async def put_memory(body: PutMemory, caller: Writer) -> Memory:
    """Remember a text; another one of the same key and app is replaced, under the same id."""
    return await memories_of(caller).memory.put(body)


@router.post("/search/memories")
async def search_memories(body: SearchMemories, caller: Reader) -> FoundMemories:
    """Find the memories that fit a query best."""
    found = await memories_of(caller).search(body.query, body.limit, body.to_filter())
    return FoundMemories(items=tuple(found))


@router.post("/reindex/memories", dependencies=COSTLY)
async def reindex(caller: Writer) -> Reindexed:
    """Make the index of the user's memories anew."""
    return Reindexed(memories=await memories_of(caller).reindex())


@router.get("/memories/{memory_id}")
async def get_memory(memory_id: MemoryId, caller: Reader) -> Memory:
    """Return a memory."""
    return await memories_of(caller).get(memory_id)


@router.delete("/memories/{memory_id}", status_code=204)
async def remove_memory(request: Request, memory_id: MemoryId, caller: Writer) -> None:
    """Remove a memory, and delete its text."""
    await memories_of(caller).remove(memory_id)
    audit(request, "memory.remove", memory=memory_id)


@router.post("/conversations/{conversation_id}/ingest", dependencies=COSTLY)
async def ingest(to: ToWrite) -> Ingested:
    """Put the summary and the turns of a conversation into its user's memories; only he may."""
    await require_owner(to.conversation.log.store)
    return await memories_of(to.caller).ingest(to.id)
