"""The requests that following costs while nothing happens."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass

import pytest
import pytest_asyncio

from perdure.client.client import Client
from perdure.client.conversation import Conversation
from perdure.embedded.temporal import TemporalServer
from perdure.gateway.following.followers import Followers
from perdure.gateway.following.settings import FollowingLimits
from reliability.following.counting import CountingStore, CountingTemporal
from reliability.following.watcher import wait_for_status, watching
from tests.harness import ConversationHarness, text_answer

pytestmark = pytest.mark.long

SETTLE_SECONDS = 2.0
COUNT_SECONDS = 6.0


@dataclass
class CountedFollowers:
    followers: Followers
    store: CountingStore
    temporal: CountingTemporal

    async def count(self) -> tuple[int, dict[str, int]]:
        """Count the requests to the store, and those to Temporal, for some seconds."""
        await asyncio.sleep(SETTLE_SECONDS)
        self.store.take_counts()
        self.temporal.take_counts()
        await asyncio.sleep(COUNT_SECONDS)
        return self.store.take_counts().total(), dict(self.temporal.take_counts())


@pytest_asyncio.fixture
async def counted(
    harness: ConversationHarness, temporal_server: TemporalServer
) -> AsyncIterator[CountedFollowers]:
    """Return followers with connections of their own, whose requests are counted."""
    temporal = CountingTemporal()
    store = CountingStore(harness.client.store)
    client = Client(await temporal.connect(temporal_server.address), store)
    followers = Followers(client, FollowingLimits(resting_polls=4))
    yield CountedFollowers(followers, store, temporal)
    await followers.close()


async def start_conversations(
    harness: ConversationHarness, count: int, finished_timeout: float
) -> list[Conversation]:
    answers = [text_answer("Hello."), text_answer("Bye.")]
    spec = harness.spec(*answers, finished_timeout=finished_timeout)
    started = [await harness.client.start("Hi.", spec) for _ in range(count)]
    for conversation in started:
        await conversation.wait_for_turn()
    return started


async def watch_all(
    stack: AsyncExitStack, counted: CountedFollowers, started: list[Conversation]
) -> None:
    for conversation in started:
        watching_it = watching(counted.followers, "local", conversation.id)
        await wait_for_status(await stack.enter_async_context(watching_it), "finished")


async def test_conversations_whose_workflows_have_ended_cost_one_question_a_second(
    harness: ConversationHarness, counted: CountedFollowers
) -> None:
    async with harness.worker(), AsyncExitStack() as stack:
        started = await start_conversations(harness, 20, finished_timeout=0.1)
        for conversation in started:
            await conversation.handle.result()
        await watch_all(stack, counted, started)
        stored, asked = await counted.count()
        assert stored == 0
        assert set(asked) == {"ListWorkflowExecutions"}
        assert asked["ListWorkflowExecutions"] <= COUNT_SECONDS + 1
        watching_it = watching(counted.followers, "local", started[7].id)
        watcher = await stack.enter_async_context(watching_it)
        await wait_for_status(watcher, "finished")
        await started[7].send("And?")
        await wait_for_status(watcher, "finished", after=watcher.status.next_seq + 1)


async def test_open_workflows_at_rest_are_watched_a_few_at_a_time(
    harness: ConversationHarness, counted: CountedFollowers
) -> None:
    async with harness.worker(), AsyncExitStack() as stack:
        started = await start_conversations(harness, 12, finished_timeout=60)
        await watch_all(stack, counted, started)
        stored, asked = await counted.count()
        assert stored == 0
        polls = asked.get("GetWorkflowExecutionHistory", 0)
        assert polls <= 4 * (COUNT_SECONDS / 20 + 1)
        # Also one that is not watched by a long poll is seen to go on.
        watchers = [
            await stack.enter_async_context(watching(counted.followers, "local", it.id))
            for it in started
        ]
        ends: list[int] = []
        for conversation, watcher in zip(started, watchers, strict=True):
            await wait_for_status(watcher, "finished")
            ends.append(watcher.status.next_seq)
            await conversation.send("And?")
        for watcher, end in zip(watchers, ends, strict=True):
            await wait_for_status(watcher, "finished", after=end + 1)
