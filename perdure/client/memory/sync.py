"""Memories for programs without an event loop of their own."""

from typing import Any

from anyio.from_thread import BlockingPortal

from perdure.client.http.client import HttpClient
from perdure.client.memory.http_memories import HttpMemories
from perdure.client.memory.memories import Memories
from perdure.client.sync import BlockingMethod, SyncClient


class SyncMemories:
    """The memories of a `SyncClient`, of a gateway's user too, with methods that wait."""

    def __init__(self, wrapped: Memories | HttpMemories, portal: BlockingPortal) -> None:
        self.wrapped = wrapped
        self.portal = portal

    put = BlockingMethod(Memories.put)
    get = BlockingMethod(Memories.get)
    search = BlockingMethod(Memories.search)
    list_memories = BlockingMethod(Memories.list_memories)
    remove = BlockingMethod(Memories.remove)
    ingest = BlockingMethod(Memories.ingest)
    reindex = BlockingMethod(Memories.reindex)

    @classmethod
    def from_client(cls, client: SyncClient) -> "SyncMemories":
        """Return the memories of a client's user. Raises Invalid."""
        connected: Any = client.wrapped
        kind = HttpMemories if isinstance(connected, HttpClient) else Memories
        return cls(kind.from_client(connected), client.portal)
