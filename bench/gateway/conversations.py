"""The conversations of a run."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from bench.gateway.ending import BenchFailed, within
from bench.gateway.processes import Stage
from perdure.agent.spec import Agent, ModelSpec
from perdure.client.conversation import Conversation
from perdure.client.http.client import HttpClient
from perdure.errors import PerdureError

STARTS_AT_ONCE = 10

START_SECONDS = 120.0
START_SECONDS_EACH = 1.0
"""Seconds that all conversations may take to start, and each of them beyond that."""

TURN_FACTOR = 3.0
"""How many times as long as its answers a turn may take, beyond START_SECONDS."""


async def start_conversations(
    stage: Stage, count: int, script: str = "load", finished_timeout: float = 600.0
) -> list[Conversation]:
    """Start conversations, and wait until each has answered once. Raises BenchFailed."""
    model = ModelSpec(name=f"openai/{script}", api_base=stage.servers.api_base)
    agent = Agent(model=model, tools=("bench.tools:add",), finished_timeout=finished_timeout)
    turns = asyncio.Semaphore(STARTS_AT_ONCE)

    async def start() -> Conversation:
        async with turns:
            conversation = await stage.client.start("Hi.", agent)
            await conversation.result()
            return conversation

    longest = START_SECONDS + START_SECONDS_EACH * count
    async with _in_time(stage, longest, f"Starting {count} conversations"):
        return list(await asyncio.gather(*(start() for _ in range(count))))


async def run_turns(
    stage: Stage, conversations: Sequence[Conversation], answer_seconds: float
) -> None:
    """Send a message to each conversation, through the gateway, and wait for the end of its turn.

    `answer_seconds` are those of all answers of a turn. Raises BenchFailed.
    """
    longest = START_SECONDS + TURN_FACTOR * answer_seconds
    work = f"The turns of {len(conversations)} conversations"
    async with (
        _in_time(stage, longest, work),
        HttpClient(stage.gateway.url, stage.key) as client,
    ):

        async def run(conversation: Conversation) -> None:
            sent = await client.conversation(conversation.id).submit("Go.")
            await conversation.wait_for_turn(after=sent.seq - 1)

        await asyncio.gather(*map(run, conversations))


async def wait_for_workflows(stage: Stage, conversations: Sequence[Conversation]) -> None:
    """Wait until the workflow of each conversation has ended. Raises BenchFailed."""
    turns = asyncio.Semaphore(STARTS_AT_ONCE)

    async def wait(conversation: Conversation) -> None:
        async with turns:
            await conversation.handle.result()

    longest = START_SECONDS + START_SECONDS_EACH * len(conversations)
    async with _in_time(stage, longest, f"The end of {len(conversations)} workflows"):
        await asyncio.gather(*map(wait, conversations))


async def list_slots(conversations: Sequence[Conversation]) -> dict[str, range]:
    """List the slots of each conversation's log."""
    return {conversation.id: range(await conversation.log.end()) for conversation in conversations}


@asynccontextmanager
async def _in_time(stage: Stage, longest: float, work: str) -> AsyncIterator[None]:
    """Give the worker so many seconds for `work`. Raises BenchFailed."""
    try:
        async with within(longest, work):
            yield
    except BenchFailed:
        stage.require_worker()
        raise
    except PerdureError as error:
        stage.require_worker()
        raise BenchFailed(f"{work} failed: {error}") from error
