"""A few of the schedules that `python -m tests.simulation` plays, and proof that its laws bite."""

from pathlib import Path

import pytest

from storage.log import EventLog
from tests.simulation.broken import BROKEN
from tests.simulation.laws import check
from tests.simulation.play import Schedule, play, scheduled
from tests.simulation.store import LISTS, READS, WRITES

REGRESSIONS = Path(__file__).with_name("regressions.txt").read_text().split()
ENOUGH = 200
"""Schedules in which each mistake must have shown."""


def judged(schedule: Schedule) -> Schedule:
    play(schedule)
    check(schedule)
    return schedule


def finds(kind: type[EventLog] = EventLog, *, spoils: bool = False) -> bool:
    """Whether a schedule breaks a law, with this log or this bucket."""
    for seed in range(ENOUGH):
        try:
            judged(scheduled(seed, kind, spoils=spoils))
        except Exception:  # a fold that meets a hole, an assertion: all of it is found
            return True
    return False


@pytest.mark.parametrize("seed", [int(seed) for seed in REGRESSIONS])
def test_a_schedule_that_once_broke_a_law_breaks_none(seed: int) -> None:
    judged(scheduled(seed))


def test_no_schedule_breaks_a_law_though_all_are_full_of_trouble() -> None:
    schedules = [judged(scheduled(seed)) for seed in range(40)]
    faults = {fault for schedule in schedules for fault in schedule.bucket.faults}
    assert faults == {*WRITES, *READS, *LISTS}
    assert any(schedule.happened["crashed"] for schedule in schedules)
    assert any(schedule.happened["run ended: Fenced"] for schedule in schedules)
    assert any(schedule.forks for schedule in schedules)


@pytest.mark.long
@pytest.mark.parametrize("first", range(40, 340, 50))
def test_no_other_schedule_breaks_a_law(first: int) -> None:
    for seed in range(first, first + 50):
        judged(scheduled(seed))


@pytest.mark.parametrize("kind", BROKEN)
def test_a_mistake_in_the_log_is_found(kind: type[EventLog]) -> None:
    assert finds(kind), kind.__doc__


def test_a_bucket_that_overwrites_is_found() -> None:
    assert finds(spoils=True)


def test_a_seed_tells_the_same_story_again() -> None:
    stories = [judged(scheduled(3, telling=True)).loop.story for _ in range(2)]
    assert stories[0]
    assert stories[0] == stories[1]
