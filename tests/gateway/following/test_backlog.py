"""Clients that are far behind."""

from contextlib import aclosing

import pytest
import temporalio.client

from perdure.client.client import Client
from perdure.events.content import Message, TextContent
from perdure.events.entry import Origin
from perdure.events.messages import MessageEvent
from perdure.gateway.following.followers import Followers
from perdure.storage.log.entry_cache import EntryCache
from perdure.storage.log.event_log import EventLog
from tests.memory_use import check_memory_growth
from tests.storage.memory import MemoryStore

pytestmark = pytest.mark.long

CONVERSATION = "00000000-0000-4000-8000-000000000000"
PADDING = "x" * 2000


async def write_log(temporal: temporalio.client.Client, count: int) -> Client:
    """Write a log of so many messages, with segments, as workers do; return its client."""
    store = MemoryStore()
    log = EventLog(store, "local", CONVERSATION, EntryCache(2**24))
    for base in range(0, count, 100):
        content = [(TextContent(text=f"{base + nth} {PADDING}"),) for nth in range(100)]
        events = [
            MessageEvent(
                timestamp="2026-01-01T00:00:00.000000",
                source="agent",
                llm_message=Message(role="assistant", content=parts),
            )
            for parts in content
        ]
        await log.append(events, base=base, origin=Origin(run="r", activity=str(base)))
    return Client(temporal, store)


async def read_all(client: Client, count: int, after_seq: int) -> None:
    """Read all slots after a slot, and check each."""
    followers, due = Followers(client), after_seq + 1
    async with aclosing(followers.follow("local", CONVERSATION, after_seq=after_seq)) as frames:
        async for frame in frames:
            if frame.kind == "durable":
                assert frame.seq == due
                text: str = frame.entry["llm_message"]["content"][0]["text"]
                assert text.startswith(f"{due} ")
                due += 1
                if due == count:
                    break
    await followers.close()


async def test_a_client_gets_what_it_lacks_wherever_it_begins(
    temporal: temporalio.client.Client,
) -> None:
    client = await write_log(temporal, 2600)
    for after_seq in (-1, 0, 998, 999, 1000, 2345, 2598):
        await read_all(client, 2600, after_seq)


@pytest.mark.longest
async def test_a_client_that_is_far_behind_takes_no_more_memory(
    temporal: temporalio.client.Client,
) -> None:
    count = 30_000  # 70 MB, and 320 MB where they are all parsed
    client = await write_log(temporal, count)
    with check_memory_growth(120_000_000):
        await read_all(client, count, -1)
