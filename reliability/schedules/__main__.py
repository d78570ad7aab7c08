"""`python -m reliability.schedules`: times of schedules while workers and Temporal are killed.

One schedule begins a conversation each second, another sends a message to one conversation every
three seconds. A worker is killed every second, and Temporal every five. Afterwards each time must
have begun one turn, and one alone.
"""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

from temporalio.api.workflowservice.v1 import ListScheduleMatchingTimesRequest
from temporalio.service import RPCError

from perdure.agent.spec import Agent, ModelSpec
from perdure.client.conversation import Conversation
from perdure.client.schedules.ids import firing_conversation_id
from perdure.client.schedules.protocol import build_definition
from perdure.client.schedules.schedules import Schedules
from perdure.errors import Unreachable
from perdure.events.messages import MessageEvent
from perdure.temporal.names import firing_workflow_id, schedule_id
from reliability.chaos.command_line import new_parser, parse_options, run_harness
from reliability.following.killers import is_set_within
from reliability.following.stage import Stage, open_stage

WORKERS = 2
SHORT_SECONDS, FULL_SECONDS = 20.0, 120.0
WORKER_PERIOD, TEMPORAL_PERIOD = 1.0, 5.0
"""Seconds from one kill of a kind to the next."""

SETTLE_TIMEOUT = 300.0
"""Seconds for all turns to end after the last kill."""

MODEL = "following-0"
NEW, OLD = "new", "old"
"""The schedule that begins conversations, and the one that sends to one that goes on."""

T = TypeVar("T")


async def run(seconds: float, seed: int, folder: Path) -> dict[str, Any]:
    """Let schedules begin turns while things are killed; return the report."""
    counts: Counter[str] = Counter()
    async with open_stage(folder, seed, WORKERS, gateways=()) as stage:
        agent = Agent(model=ModelSpec(name=f"openai/{MODEL}", api_base=stage.model), tools=())
        schedules = Schedules(stage.client)
        began = monotonic()
        conversation = await create_schedules(schedules, agent)
        async with killing(stage, counts, random.Random(seed)):
            await asyncio.sleep(seconds)
        await insist(partial(schedules.pause, NEW))
        await insist(partial(schedules.pause, OLD))
        paused = datetime.now(UTC)
        findings = await audit_new(schedules, paused, counts)
        findings += await audit_old(schedules, conversation, paused, counts)
        findings += stage.workers.crash_outputs
        return {
            "seed": seed,
            "seconds": round(monotonic() - began),
            "counts": dict(sorted(counts.items())),
            "findings": findings,
        }


async def create_schedules(schedules: Schedules, agent: Agent) -> Conversation:
    """Create the schedules; return the conversation of the second one."""
    conversation = await schedules.client.start("Begin.", agent)
    await conversation.result()
    each = build_definition("Now.", every=1, overlap="allow_all")
    await schedules.create(NEW, each, agent)
    rare = build_definition("Again.", every=3, overlap="allow_all", conversation_id=conversation.id)
    await schedules.create(OLD, rare)
    return conversation


@asynccontextmanager
async def killing(stage: Stage, counts: Counter[str], chance: random.Random) -> AsyncIterator[None]:
    """Kill workers and Temporal while inside."""
    over = asyncio.Event()

    async def kill_worker() -> None:
        await stage.workers.kill(chance.choice(list(stage.workers.workers)))

    async def kill_temporal() -> None:
        await stage.temporal.kill()
        await stage.temporal.start()

    async def keep_killing(name: str, period: float, kill: Callable[[], Awaitable[None]]) -> None:
        pause = period
        while not await is_set_within(over, pause):
            killed = monotonic()
            await kill()
            counts[f"{name} killed"] += 1
            pause = max(0.1, period - (monotonic() - killed))

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(keep_killing("workers", WORKER_PERIOD, kill_worker))
        tasks.create_task(keep_killing("temporal", TEMPORAL_PERIOD, kill_temporal))
        yield
        over.set()


async def audit_new(schedules: Schedules, paused: datetime, counts: Counter[str]) -> list[str]:
    """Return what is wrong with the conversations that were begun."""
    ids = await list_expected(schedules, NEW, paused)
    async with asyncio.timeout(SETTLE_TIMEOUT):
        while (fired := await count_begun(schedules, NEW)) is None:
            await asyncio.sleep(0.5)
        texts = {name: await read_messages(schedules, name) for name in ids}
        while sum(map(bool, texts.values())) < fired:
            await asyncio.sleep(1)
            texts = {name: await read_messages(schedules, name) for name in ids}
    counts["times of the schedule"] = len(ids)
    counts["conversations begun"] = sum(map(bool, texts.values()))
    odd = [f"{name}: has the messages {it}" for name, it in texts.items() if it and it != ["Now."]]
    # The first second may be the one in which it was created, and the last that of its pause.
    lost = [name for name in ids[1:-1] if not texts[name]]
    begun = set(await schedules.client.list_conversations(len(ids) + 100)) - set(ids)
    unknown = len(begun) - 1  # the conversation of the other schedule
    missed = (await schedules.get(NEW)).missed_count
    return [
        *odd,
        *(f"{name}: its time has begun nothing" for name in lost),
        *([f"{unknown} conversations of no time of the schedule"] if unknown else []),
        *([f"{missed} times were missed"] if missed else []),
    ]


async def audit_old(
    schedules: Schedules, conversation: Conversation, paused: datetime, counts: Counter[str]
) -> list[str]:
    """Return what is wrong with the messages that were sent."""
    fired = (await schedules.get(OLD)).firing_count or 0
    expected = ["Begin.", *["Again."] * fired]
    async with asyncio.timeout(SETTLE_TIMEOUT):
        while len(texts := await read_messages(schedules, conversation.id)) < len(expected):
            await asyncio.sleep(1)
        await asyncio.sleep(3)  # for one too many
        texts = await read_messages(schedules, conversation.id)
    counts["messages sent"] = len(texts) - 1
    times = await list_expected(schedules, OLD, paused)
    return [
        *([] if texts == expected else [f"{len(texts) - 1} messages of {fired} times"]),
        *([] if len(times) - 2 <= fired <= len(times) else [f"{fired} of {len(times)} times"]),
    ]


async def count_begun(schedules: Schedules, name: str) -> int | None:
    """Return how many turns a schedule has begun, once it is known to begin no more."""
    shown = await schedules.get(name)
    await asyncio.sleep(2)
    again = await schedules.get(name)
    return shown.firing_count if shown.firing_count == again.firing_count else None


async def read_messages(schedules: Schedules, conversation_id: str) -> list[str]:
    events = await schedules.client.conversation(conversation_id).event_log.read()
    return [
        event.llm_message.content[0].text  # type: ignore[union-attr]
        for event in events
        if isinstance(event, MessageEvent) and event.source == "user"
    ]


async def list_expected(schedules: Schedules, name: str, paused: datetime) -> list[str]:
    """Return the conversations of the times from the creation of a schedule to its pause."""
    client = schedules.client
    shown = await schedules.get(name)
    request = ListScheduleMatchingTimesRequest(
        namespace=client.temporal.namespace, schedule_id=schedule_id(client.user_id, name)
    )
    created = datetime.fromisoformat(f"{shown.created}+00:00")
    request.start_time.FromDatetime(created - timedelta(seconds=1))
    request.end_time.FromDatetime(paused)
    found = await client.temporal.workflow_service.list_schedule_matching_times(request)
    workflow_id = firing_workflow_id(client.user_id, name)
    moments = [time.ToDatetime().strftime("%Y-%m-%dT%H:%M:%SZ") for time in found.start_time]
    return [firing_conversation_id(client.user_id, f"{workflow_id}-{it}") for it in moments]


async def insist(act: Callable[[], Awaitable[T]]) -> T:
    """Do something that a server which has just come back may refuse."""
    async with asyncio.timeout(60):
        while True:
            try:
                return await act()
            except (Unreachable, RPCError):
                await asyncio.sleep(0.5)


def main() -> None:
    """Exit code 0 means that no time was lost, and none has begun two turns."""
    parser = new_parser("reliability.schedules", __doc__)
    parser.add_argument("--seconds", type=float, help="for which things are killed")
    options = parse_options(parser)
    seconds = options.seconds or (SHORT_SECONDS if options.short else FULL_SECONDS)
    run_harness(lambda folder: run(seconds, options.seed, folder), options.keep)


if __name__ == "__main__":
    main()
