"""A schedule: what one seed makes of a conversation, its runs, its forks and those who look on."""

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, field
from uuid import UUID

from activities.items import updated
from storage.errors import StoreUnavailable
from storage.fork import fork
from storage.log import EventLog
from storage.state import state_at
from tests.simulation.conversation import USER, Known, Run
from tests.simulation.readers import Reader
from tests.simulation.scheduler import Endless, Loop
from tests.simulation.store import Access, Bucket
from tests.simulation.temporal import Temporal, Weather
from tests.simulation.world import NOW

CALM = 20.0
"""Seconds after which everything works, so that everybody comes to an end."""

TROUBLES = (0.0, 0.03, 0.1, 0.2)
CRASHES = (0.0, 0.005, 0.015)
SILENCES = (0.0, 0.05, 0.15)
STOPS = (0.0, 0.1)


class Broken(AssertionError):
    """A law did not hold."""


@dataclass
class Schedule:
    """A schedule that was played, and all that its laws are judged by."""

    seed: int
    loop: Loop
    bucket: Bucket
    temporal: Temporal
    known: dict[str, Known] = field(default_factory=dict)
    readers: list[Reader] = field(default_factory=list)
    forks: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Each fork: which conversation it forks, and the first slot of its own."""

    @property
    def happened(self) -> Counter[str]:
        return self.temporal.happened


def scheduled(
    seed: int, kind: type[EventLog] = EventLog, *, spoils: bool = False, telling: bool = False
) -> Schedule:
    """The schedule of this seed, not yet played."""
    loop = Loop(seed, telling=telling)  # type: ignore[abstract]
    dice = loop.dice
    bucket = Bucket(loop, dice.choice(TROUBLES), CALM, spoils=spoils)
    weather = Weather(dice.choice(CRASHES), dice.choice(SILENCES), dice.choice(STOPS))
    return Schedule(seed, loop, bucket, Temporal(loop, bucket, weather, kind))


def play(schedule: Schedule) -> None:
    """Raises Broken where it comes to no end."""
    random.seed(schedule.seed)  # storage/s3.py rolls dice of its own for its pauses
    try:
        schedule.loop.play(_story(schedule))
    except Endless as error:
        raise Broken(f"no end is in sight: {error}") from error


async def _story(schedule: Schedule) -> None:
    dice, first = schedule.loop.dice, str(UUID(int=1))
    await _conversation(schedule, first, runs=dice.choice((1, 2, 2, 2, 3)))
    if schedule.loop.chance(0.2):
        child = await _forked(schedule, first, str(UUID(int=2)))
        await _conversation(schedule, child, runs=dice.choice((1, 1, 1, 2)))
    await schedule.temporal.quiet()
    await asyncio.gather(*(_last_run(schedule, one) for one in schedule.known))
    await schedule.temporal.quiet()


async def _conversation(schedule: Schedule, conversation_id: str, runs: int) -> None:
    """Several runs, each begun while the one before it may still be at work."""
    loop, temporal = schedule.loop, schedule.temporal
    known = schedule.known.setdefault(conversation_id, Known())
    looking = [_onlooker(schedule, conversation_id) for _ in range(loop.dice.randrange(3))]
    going: list[asyncio.Task[None]] = []
    for number in range(runs):
        run = Run(
            temporal,
            conversation_id,
            f"run-{conversation_id[-1]}.{number}",
            known,
            loop.dice.randrange(2),
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
    run = Run(schedule.temporal, conversation_id, f"run-{conversation_id[-1]}.last", known, 0)
    await run.converse()
    if run.ended == "Fenced" and len(run.chain) > 1:
        # What the run before the hand-over had given up was late: the next opening goes on.
        schedule.happened["fenced by a straggler"] += 1
    elif run.ended:
        raise Broken(f"the last run ended: {run.ended}, though nobody came after it")


def _onlooker(schedule: Schedule, conversation_id: str) -> "asyncio.Task[None]":
    reader = Reader(schedule.bucket, conversation_id, cached=schedule.loop.chance(0.5))
    schedule.readers.append(reader)
    return schedule.loop.create_task(reader.look_on(1 + schedule.loop.dice.randrange(4)))


async def _forked(schedule: Schedule, parent: str, child: str) -> str:
    """Fork the conversation at one of its slots, as often as it takes to be told of it."""
    loop, temporal = schedule.loop, schedule.temporal
    store = Access(schedule.bucket, loop.dice.choice((0.0, 1e9)))
    log = temporal.kind(store, USER, parent)
    while True:
        try:
            end = await log.end()
            state = await state_at(log, 1 + loop.dice.randrange(max(1, end)))
            break
        except StoreUnavailable:
            await asyncio.sleep(0.5)
    mark = updated(NOW, "forked", {"conversation_id": parent, "seq": state.next_seq - 1})
    while True:
        try:
            await fork(log, child, state, [mark])
            break
        except StoreUnavailable:
            await asyncio.sleep(0.5)
    schedule.forks[child] = (parent, state.next_seq)
    return child
