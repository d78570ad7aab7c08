"""A schedule: what one seed makes of a conversation, its runs, its forks and those who look on."""

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, field
from uuid import UUID

from perdure.activities.support.inbox_events import state_update
from perdure.storage.errors import StoreUnavailable
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.fork import fork
from perdure.storage.log.state import read_state_at
from reliability.simulation.bucket import Bucket
from reliability.simulation.conversation import USER, WorkflowKnowledge, WorkflowRun
from reliability.simulation.readers import Reader
from reliability.simulation.scheduler import Endless, SimulatedLoop
from reliability.simulation.store import Access
from reliability.simulation.temporal import FaultRates, Temporal
from reliability.simulation.world import NOW

CALM_AFTER = 20.0
"""Seconds after which everything works, so that everybody comes to an end."""

FAULT_RATES = (0.0, 0.03, 0.1, 0.2)
CRASH_RATES = (0.0, 0.005, 0.015)
TIMEOUT_RATES = (0.0, 0.05, 0.15)
STOP_RATES = (0.0, 0.1)

LOCAL_SEEDS = (1, 2)
"""The seeds, by their remainder, of schedules in which brief steps are local activities."""


class Broken(AssertionError):
    """A law did not hold."""


@dataclass
class Schedule:
    """A schedule that was played, and all that its laws are judged by."""

    seed: int
    loop: SimulatedLoop
    bucket: Bucket
    temporal: Temporal
    known: dict[str, WorkflowKnowledge] = field(default_factory=dict)
    readers: list[Reader] = field(default_factory=list)
    forks: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Each fork: which conversation it forks, and the first slot of its own."""

    @property
    def trace(self) -> Counter[str]:
        return self.temporal.happened


def make_schedule(
    seed: int, kind: type[EventLog] = EventLog, *, spoils: bool = False, telling: bool = False
) -> Schedule:
    """The schedule of this seed, not yet played."""
    loop = SimulatedLoop(seed, telling=telling)  # type: ignore[abstract]
    dice = loop.random
    bucket = Bucket(loop, dice.choice(FAULT_RATES), CALM_AFTER, spoils=spoils)
    weather = FaultRates(
        dice.choice(CRASH_RATES), dice.choice(TIMEOUT_RATES), dice.choice(STOP_RATES)
    )
    local = seed % 5 in LOCAL_SEEDS
    return Schedule(seed, loop, bucket, Temporal(loop, bucket, weather, kind, local=local))


def play(schedule: Schedule) -> None:
    """Raises Broken where it comes to no end."""
    random.seed(schedule.seed)  # storage/s3.py rolls dice of its own for its pauses
    try:
        schedule.loop.play(run_schedule(schedule))
    except Endless as error:
        raise Broken(f"no end is in sight: {error}") from error


async def run_schedule(schedule: Schedule) -> None:
    dice, first = schedule.loop.random, str(UUID(int=1))
    await run_conversation(schedule, first, runs=dice.choice((1, 2, 2, 2, 3)))
    if schedule.loop.chance(0.2):
        child = await run_fork(schedule, first, str(UUID(int=2)))
        await run_conversation(schedule, child, runs=dice.choice((1, 1, 1, 2)))
    await schedule.temporal.wait_until_idle()
    await asyncio.gather(*(_last_run(schedule, item) for item in schedule.known))
    await schedule.temporal.wait_until_idle()


async def run_conversation(schedule: Schedule, conversation_id: str, runs: int) -> None:
    """Several runs, each begun while the one before it may still be at work."""
    loop, temporal = schedule.loop, schedule.temporal
    known = schedule.known.setdefault(conversation_id, WorkflowKnowledge())
    looking = [run_reader(schedule, conversation_id) for _ in range(loop.random.randrange(3))]
    going: list[asyncio.Task[None]] = []
    for number in range(runs):
        run = WorkflowRun(
            temporal,
            conversation_id,
            f"run-{conversation_id[-1]}.{number}",
            known,
            loop.random.randrange(2),
        )
        going.append(loop.create_task(run.converse()))
        reset = number < runs - 1 and loop.chance(0.7)
        if not reset:
            await asyncio.wait(going[-1:])
            continue
        await asyncio.sleep(loop.delay() * 8)
        if loop.chance(0.5):  # its workflow is terminated; what its activities do goes on
            going[-1].cancel()
            temporal.happened["terminated"] += 1
    for ended in await asyncio.gather(*going, *looking, return_exceptions=True):
        if isinstance(ended, Exception):
            raise ended


async def _last_run(schedule: Schedule, conversation_id: str) -> None:
    """In the end somebody opens the conversation once more, and it goes on to its end.

    Raises Broken where it does not: nobody comes after this run.
    """
    known = schedule.known[conversation_id]
    run = WorkflowRun(
        schedule.temporal, conversation_id, f"run-{conversation_id[-1]}.last", known, 0
    )
    await run.converse()
    if run.ended == "Fenced" and len(run.chain) > 1:
        # What the run before the hand-over had given up was late: the next opening goes on.
        schedule.trace["fenced by a straggler"] += 1
    elif run.ended:
        raise Broken(f"the last run ended: {run.ended}, though nobody came after it")


def run_reader(schedule: Schedule, conversation_id: str) -> "asyncio.Task[None]":
    reader = Reader(schedule.bucket, conversation_id, cached=schedule.loop.chance(0.5))
    schedule.readers.append(reader)
    return schedule.loop.create_task(reader.read_repeatedly(1 + schedule.loop.random.randrange(4)))


async def run_fork(schedule: Schedule, parent: str, child: str) -> str:
    """Fork the conversation at one of its slots, as often as it takes to be told of it."""
    loop, temporal = schedule.loop, schedule.temporal
    store = Access(schedule.bucket, loop.random.choice((0.0, 1e9)))
    log = temporal.kind(store, USER, parent)
    while True:
        try:
            end = await log.end()
            state = await read_state_at(log, 1 + loop.random.randrange(max(1, end)))
            break
        except StoreUnavailable:
            await asyncio.sleep(0.5)
    mark = state_update(NOW, "forked", {"conversation_id": parent, "seq": state.next_seq - 1})
    while True:
        try:
            await fork(log, temporal.kind(store, USER, child), state, [mark])
            break
        except StoreUnavailable:
            await asyncio.sleep(0.5)
    schedule.forks[child] = (parent, state.next_seq)
    return child
