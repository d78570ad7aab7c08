"""The interface of memories for commands, over a store or a gateway."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from pydantic import ValidationError

from perdure.api.memories import (
    FoundMemory,
    Ingested,
    Memory,
    MemoryFilter,
    PutMemory,
    SearchMemories,
)
from perdure.errors import Invalid
from perdure.events.validation_errors import describe_errors


class UserMemories(Protocol):
    """The methods of `Memories` and `HttpMemories`, which say what each does."""

    async def put(
        self,
        text: str,
        key: str | None = None,
        app: str = "",
        tags: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> Memory: ...
    async def get(self, memory_id: str) -> Memory: ...
    async def search(
        self, query: str, limit: int = 10, only: MemoryFilter | None = None
    ) -> list[FoundMemory]: ...
    async def list_memories(
        self, limit: int = 100, after: str = "", only: MemoryFilter | None = None
    ) -> list[Memory]: ...
    async def remove(self, memory_id: str) -> None: ...
    async def ingest(self, conversation_id: str) -> Ingested: ...
    async def reindex(self) -> int: ...


def build_draft(
    text: str, key: str | None, app: str, tags: Sequence[str], metadata: Mapping[str, Any] | None
) -> PutMemory:
    """Build the memory that is to be put. Raises Invalid with the fault."""
    try:
        return PutMemory(
            text=text, key=key, app=app, tags=tuple(tags), metadata=dict(metadata or {})
        )
    except ValidationError as error:
        raise Invalid(f"The memory is not right: {describe_errors(error)}.") from error


def build_search(query: str, limit: int, only: MemoryFilter | None) -> SearchMemories:
    """Build a search. Raises Invalid with the fault."""
    fields = {} if only is None else only.model_dump()
    try:
        return SearchMemories(query=query, limit=limit, **fields)
    except ValidationError as error:
        raise Invalid(f"The search is not right: {describe_errors(error)}.") from error


def build_filter(**fields: Any) -> MemoryFilter:
    """Build a filter. Raises Invalid with the fault."""
    try:
        return MemoryFilter(**fields)
    except ValidationError as error:
        raise Invalid(f"The filter is not right: {describe_errors(error)}.") from error
