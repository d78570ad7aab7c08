"""The memories of a user, for programs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from perdure.api.memories import FoundMemory, Ingested, Memory, MemoryFilter
from perdure.client.client import Client
from perdure.client.http.client import HttpClient
from perdure.client.memory.protocol import build_draft, build_search
from perdure.client.memory.service import open_memories
from perdure.errors import Invalid, NotFound
from perdure.memory.ingest import ingest_conversation
from perdure.memory.user_memory import UserMemory
from perdure.settings.settings import MemorySettings, load_settings
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.state import read_state

EVERYTHING = MemoryFilter()


@dataclass(frozen=True)
class Memories:
    """The memories of one user: facts and texts that outlive a conversation.

    They are objects of the store; a search needs `perdure[memory]` as well.
    """

    memory: UserMemory

    @classmethod
    def from_client(cls, client: Client, settings: MemorySettings | None = None) -> "Memories":
        """Return the memories of a client's user; those of a gateway's are `HttpMemories`.

        `settings` are the table [memory], by default that of the client's settings, or else of the
        environment. Raises Invalid.
        """
        if isinstance(client, HttpClient):
            from perdure.client.memory.http_memories import HttpMemories

            return cast("Memories", HttpMemories(client))
        if settings is None:
            settings = (client.settings or load_settings()).memory
        return cls(open_memories(settings, client.store).of_user(client.user_id))

    async def put(
        self,
        text: str,
        key: str | None = None,
        app: str = "",
        tags: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> Memory:
        """Remember a text; another one of the same key and app is replaced, under the same id.

        A second time with the same content and key changes nothing. Raises Invalid for a text of
        more than 64 KiB.
        """
        return await self.memory.put(build_draft(text, key, app, tags, metadata))

    async def get(self, memory_id: str) -> Memory:
        """Return a memory. Raises NotFound, Invalid."""
        return await self.memory.get(memory_id)

    async def search(
        self, query: str, limit: int = 10, only: MemoryFilter | None = None
    ) -> list[FoundMemory]:
        """Find the memories that fit best, at most 100; whatever was put before is searched.

        Raises MissingExtra without LanceDB, Invalid, and Unreachable if the embedding model fails.
        """
        search = build_search(query, limit, only)
        return await self.memory.search(search.query, search.limit, search.to_filter())

    async def list_memories(
        self, limit: int = 100, after: str = "", only: MemoryFilter | None = None
    ) -> list[Memory]:
        """List memories by their ids, from the one behind the id `after`."""
        if limit < 1:
            raise Invalid("A list of memories has one at least.", "Give a limit from 1 on.")
        return await self.memory.list_memories(limit, after, only or EVERYTHING)

    async def remove(self, memory_id: str) -> None:
        """Remove a memory, and delete its text. Raises NotFound, Invalid."""
        await self.memory.remove(memory_id)

    async def ingest(self, conversation_id: str) -> Ingested:
        """Put the summary and the turns of one of the user's conversations.

        What was put of it before is updated, what was removed stays away. Raises NotFound, Invalid.
        """
        records = self.memory.records
        try:
            log = EventLog(records.store, records.user_id, conversation_id)
        except ValueError as error:
            raise Invalid(str(error)) from error
        state = await read_state(log)
        if state.spec is None:
            raise NotFound.for_conversation(conversation_id)
        return await ingest_conversation(self.memory, log, state.spec)

    async def reindex(self) -> int:
        """Make the index anew from the memories; return how many there are."""
        return await self.memory.reindex()
