"""Some schedules of `python -m reliability.simulation`; its laws find planted bugs."""

from pathlib import Path

import pytest

from perdure.storage.log.event_log import EventLog
from reliability.simulation.broken import BROKEN, IgnoresRecordedResponse
from reliability.simulation.laws import check
from reliability.simulation.play import Schedule, make_schedule, play
from reliability.simulation.store import CHECKED_READS, LISTS, WRITES
from reliability.simulation.trials.kinds import CONVERSATION, make_playable

ROOT = Path(__file__).parents[2]
REGRESSIONS = (ROOT / "reliability" / "simulation" / "regressions.txt").read_text().splitlines()
ENOUGH = 300
"""Schedules in which each mistake must have shown."""


def judged(schedule: Schedule) -> Schedule:
    play(schedule)
    check(schedule)
    return schedule


LIKELY_SEEDS: dict[type[EventLog], tuple[int, ...]] = {IgnoresRecordedResponse: (1506, 1592)}
"""Seeds that showed a rare mistake: they are tried first, and any others after them."""


def finds(kind: type[EventLog] = EventLog, *, spoils: bool = False) -> bool:
    """Tell whether a schedule breaks a law, with this log or this bucket."""
    for seed in (*LIKELY_SEEDS.get(kind, ()), *range(ENOUGH)):
        try:
            judged(make_schedule(seed, kind, spoils=spoils))
        except Exception:  # a fold that meets a hole, an assertion: all of it is found
            return True
    return False


@pytest.mark.parametrize("line", dict.fromkeys(REGRESSIONS))
def test_a_schedule_that_once_broke_a_law_breaks_none(line: str) -> None:
    kind, _, seed = line.rpartition(" ")  # a seed alone is that of a conversation
    make_playable(kind or CONVERSATION, int(seed)).run()


@pytest.mark.long
def test_no_schedule_breaks_a_law_and_every_kind_of_fault_occurs() -> None:
    schedules = [judged(make_schedule(seed)) for seed in range(40)]
    faults = {fault for schedule in schedules for fault in schedule.bucket.faults}
    assert faults == {*WRITES, *CHECKED_READS, *LISTS}
    assert any(schedule.trace["crashed"] for schedule in schedules)
    assert any(schedule.trace["run ended: Fenced"] for schedule in schedules)
    assert any(schedule.forks for schedule in schedules)


@pytest.mark.long
@pytest.mark.parametrize("first", range(40, 340, 50))
def test_no_other_schedule_breaks_a_law(first: int) -> None:
    for seed in range(first, first + 50):
        judged(make_schedule(seed))


@pytest.mark.long
@pytest.mark.parametrize("kind", BROKEN)
def test_a_planted_bug_in_the_log_is_found(kind: type[EventLog]) -> None:
    assert finds(kind), kind.__doc__


def test_a_bucket_that_overwrites_is_found() -> None:
    assert finds(spoils=True)


def test_a_seed_reproduces_its_trace() -> None:
    stories = [judged(make_schedule(3, telling=True)).loop.trace for _ in range(2)]
    assert stories[0]
    assert stories[0] == stories[1]
