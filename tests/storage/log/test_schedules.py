"""Many writers, a bad network, and no order among them: the log stays what it must be.

A small workflow thinks and acts as the real one does. Its activities are retried with other bytes,
some attempts are given up by the workflow and go on all the same, and in the end the workflow is
reset: another run opens the conversation while the first one still writes. A `fate` decides how
they interleave and what is lost; where it has run out, all is quiet and everybody finishes.
"""

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import Coroutine, Sequence
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.events.entry import Entry
from perdure.events.event import AnyEvent, answered_action_id
from perdure.events.tools import ActionEvent
from perdure.storage.errors import Fenced, StoreUnavailable
from perdure.storage.log.event_log import EventLog
from perdure.storage.store import Store
from tests.storage.faulty import Choose, FaultyStore, choices_from
from tests.storage.made import (
    action_event,
    error_event,
    log_in,
    observation_event,
    opened_event,
    origin_by,
)
from tests.storage.memory import MemoryStore

CONVERSATION = str(UUID(int=7))


def with_other_bytes(event: AnyEvent, text: str) -> AnyEvent:
    """Another attempt's version of the event; the time of an action is that of its response."""
    name = "summary" if isinstance(event, ActionEvent) else "timestamp"
    return event.model_copy(update={name: text})


class Run:
    """A workflow run and its traces; `folded` is the log as it knows it."""

    def __init__(self, name: str, store: Store, fate: Choose) -> None:
        self.name = name
        self.fate = fate
        self.log = EventLog(FaultyStore(store, fate), "somebody", CONVERSATION)
        self.folded: list[Entry] = []
        self.ghosts: list[asyncio.Task[list[Entry]]] = []
        self.clock = (f"2025-01-01T00:00:00.{tick:06d}" for tick in itertools.count())

    async def open(self) -> None:
        """Read what there is and put the run's name behind it, however often others are first."""
        while True:
            self.folded = await EventLog(self.log.store, "somebody", CONVERSATION).read(0, 10_000)
            try:
                return self.fold([await self.step("open", [opened_event(self.name)], shared=False)])
            except Fenced:
                continue

    async def turn(self, number: int) -> None:
        """Ask for some actions, do them side by side, and settle those that were lost."""
        actions = [action_event(f"{number}.{call}") for call in range(1 + self.fate(4))]
        thought = await self.step(f"think {number}", actions, shared=False)
        assert [entry.origin.position for entry in thought] == list(range(len(actions)))
        self.fold([thought])
        done = await asyncio.gather(
            *(self.act(entry.event.id) for entry in thought), return_exceptions=True
        )
        self.fold([walked for walked in done if not isinstance(walked, BaseException)])
        for error in (walked for walked in done if isinstance(walked, BaseException)):
            raise error
        for entry in thought:
            if entry.event.id not in (answered_action_id(known.event) for known in self.folded):
                lost = [error_event(entry.event.id)]
                self.fold([await self.step(f"lost {entry.seq}", lost, shared=True)])

    async def act(self, action_id: str) -> list[Entry]:
        if self.fate(3) != 1:
            return await self.step(f"tool {action_id}", [observation_event(action_id)], shared=True)
        self.leave(self.attempts(f"tool {action_id}", [observation_event(action_id)], shared=True))
        return []

    async def step(self, activity: str, events: Sequence[AnyEvent], *, shared: bool) -> list[Entry]:
        """Run an activity, perhaps beside an earlier attempt of it that was thought dead."""
        if self.fate(3) == 1:
            self.leave(self.attempts(activity, events, shared=shared))
        return await self.attempts(activity, events, shared=shared)

    def attempts(
        self, activity: str, events: Sequence[AnyEvent], *, shared: bool
    ) -> Coroutine[Any, Any, list[Entry]]:
        """Attempts at an activity until one is not cut off; the base is that of this moment."""
        base, origin = len(self.folded), origin_by(activity, self.name)

        async def attempt() -> list[Entry]:
            while True:
                now = next(self.clock)
                made = [with_other_bytes(event, now) for event in events]
                try:
                    return await self.log.append(made, base=base, origin=origin, shared=shared)
                except StoreUnavailable:
                    continue

        return attempt()

    def leave(self, attempts: Coroutine[Any, Any, list[Entry]]) -> None:
        self.ghosts.append(asyncio.create_task(attempts))

    def fold(self, walks: Sequence[list[Entry]]) -> None:
        """Add what activities with one base returned: the same everywhere, and without a hole."""
        entries_by_seq = {entry.seq: entry for walked in walks for entry in walked}
        assert all(entries_by_seq[entry.seq] == entry for walked in walks for entry in walked)
        base = len(self.folded)
        assert sorted(entries_by_seq) == list(range(base, base + len(entries_by_seq)))
        self.folded.extend(entries_by_seq[seq] for seq in sorted(entries_by_seq))

    async def end(self) -> None:
        """Wait for what was left behind: it adopts, or is fenced, and never fails otherwise."""
        ends = await asyncio.gather(*self.ghosts, return_exceptions=True)
        for failure in (end for end in ends if isinstance(end, BaseException)):
            assert isinstance(failure, Fenced)


async def play(store: Store, fate: Choose) -> list[Entry]:
    """A conversation of two runs; returns its log after checking all that must hold."""
    first, second = Run("run-1", store, fate), Run("run-2", store, fate)
    await first.open()
    for number in range(1 + fate(3)):
        await first.turn(number)
    cut_off = asyncio.create_task(first.turn(90))
    await second.open()
    [error] = await asyncio.gather(cut_off, return_exceptions=True)
    assert error is None or isinstance(error, Fenced)
    for number in range(100, 101 + fate(3)):
        await second.turn(number)
    await first.end()
    await second.end()
    log = await log_in(store, conversation=CONVERSATION).read(0, 10_000)
    check(log, first, second)
    return log


def check(log: list[Entry], first: Run, second: Run) -> None:
    assert log == second.folded
    assert log[: len(first.folded)] == first.folded
    assert max(Counter(entry.origin for entry in log).values()) == 1
    runs = [entry.origin.run for entry in log]
    assert runs == sorted(runs)
    answers = Counter(
        answered_action_id(entry.event) for entry in log if answered_action_id(entry.event)
    )
    actions = {entry.event.id for entry in second.folded if entry.event.kind == "ActionEvent"}
    assert set(answers) <= actions
    assert set(answers.values()) <= {1}
    owed = {entry.event.id for entry in log if entry.origin.run == second.name}
    assert {action for action in actions if action in owed} <= set(answers)


@settings(max_examples=300, deadline=None)
@given(numbers=st.binary(max_size=1500))
async def test_no_schedule_breaks_a_log(numbers: bytes) -> None:
    await play(MemoryStore(), choices_from(numbers))


@pytest.mark.parametrize("seed", range(40))
async def test_no_long_schedule_breaks_a_log(seed: int) -> None:
    await play(MemoryStore(), choices_from(random.Random(seed).randbytes(2000)))


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 4))]
)
async def test_no_schedule_breaks_a_log_on_a_real_store(store: Store, seed: int) -> None:
    log = await play(store, choices_from(random.Random(seed).randbytes(300)))
    assert len(log) > 5
