"""The memories of a user of a gateway."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perdure.api.memories import (
    FoundMemories,
    FoundMemory,
    Ingested,
    Memory,
    MemoryFilter,
    MemoryPage,
    Reindexed,
)
from perdure.client.http.client import HttpClient
from perdure.client.memory.protocol import build_draft, build_search
from perdure.errors import Invalid
from perdure.memory.user_memory import bad_id
from perdure.storage.keys import check_memory_id

MAX_PAGE = 100
"""Memories that are asked for at once."""

MAX_WAIT = 600.0
"""Seconds for which an ingestion or a new index is awaited."""


@dataclass(frozen=True)
class HttpMemories:
    """The memories of one user of a gateway, with the methods of `Memories`."""

    client: HttpClient

    @classmethod
    def from_client(cls, client: HttpClient) -> "HttpMemories":
        """Return the memories of a client's user."""
        return cls(client)

    async def put(
        self,
        text: str,
        key: str | None = None,
        app: str = "",
        tags: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> Memory:
        """Remember a text; see `Memories.put`."""
        body = build_draft(text, key, app, tags, metadata)
        # The same text under the same key again changes nothing.
        return await self.client.connection.post(
            "/v1/memories", Memory, body, repeatable=key is not None
        )

    async def get(self, memory_id: str) -> Memory:
        """Return a memory. Raises NotFound, Invalid."""
        return await self.client.connection.get(_path_of(memory_id), Memory)

    async def search(
        self, query: str, limit: int = 10, only: MemoryFilter | None = None
    ) -> list[FoundMemory]:
        """Find the memories that fit best; see `Memories.search`."""
        body = build_search(query, limit, only)
        found = await self.client.connection.post(
            "/v1/search/memories", FoundMemories, body, repeatable=True, max_wait=MAX_WAIT
        )
        return list(found.items)

    async def list_memories(
        self, limit: int = 100, after: str = "", only: MemoryFilter | None = None
    ) -> list[Memory]:
        """List memories by their ids, from the one behind the id `after`."""
        if limit < 1:
            raise Invalid("A list of memories has one at least.", "Give a limit from 1 on.")
        query = {} if only is None else only.model_dump(mode="json", exclude_none=True)
        query["tag"] = query.pop("tags", None) or None
        items: list[Memory] = []
        cursor: str | None = after or None
        while len(items) < limit:
            size = min(limit - len(items), MAX_PAGE)
            page = await self.client.connection.get(
                "/v1/memories", MemoryPage, limit=size, cursor=cursor, **query
            )
            items += page.items
            if (cursor := page.next_cursor) is None:
                break
        return items

    async def remove(self, memory_id: str) -> None:
        """Remove a memory, and delete its text. Raises NotFound, Invalid."""
        await self.client.connection.delete(_path_of(memory_id))

    async def ingest(self, conversation_id: str) -> Ingested:
        """Put the summary and the turns of a conversation; see `Memories.ingest`."""
        path = f"{self.client.conversation(conversation_id).log.path}/ingest"
        return await self.client.connection.post(path, Ingested, repeatable=True, max_wait=MAX_WAIT)

    async def reindex(self) -> int:
        """Make the index anew from the memories; return how many there are."""
        made = await self.client.connection.post(
            "/v1/reindex/memories", Reindexed, repeatable=True, max_wait=MAX_WAIT
        )
        return made.memories


def _path_of(memory_id: str) -> str:
    try:
        return f"/v1/memories/{check_memory_id(memory_id)}"
    except ValueError as error:
        raise bad_id(memory_id) from error
