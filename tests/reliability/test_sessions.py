"""The audit of the sessions finds what it is to find: one that finds nothing proves nothing."""

import pytest

from perdure.events.event import AnyEvent
from reliability.sessions.audit import WorkSpan, count_suspensions, most_at_once, work_spans
from reliability.sessions.open_calls import Call, longest_excess
from tests.builders import (
    SUSPENSION,
    agent,
    entries,
    opened_event,
    prompt,
    spec_event,
    user,
)

LOG: list[AnyEvent] = [opened_event(), spec_event(), prompt()]


def at(second: int) -> str:
    return f"2026-11-24T00:00:{second:02d}.000000"


def test_the_spans_of_a_log_are_those_of_its_turns() -> None:
    turns: list[AnyEvent] = [user(), agent(), user(), SUSPENSION, user()]
    events: list[AnyEvent] = [
        event.model_copy(update={"timestamp": at(second)})
        for second, event in enumerate([*LOG, *turns])
    ]
    log = entries(events)
    assert work_spans(log) == [
        WorkSpan(at(3), at(4)),
        WorkSpan(at(5), at(6)),
        WorkSpan(at(7), None),
    ]
    assert count_suspensions(log) == 1


@pytest.mark.parametrize(
    ("spans", "most"),
    [
        ([], 0),
        ([(0, 3), (3, 5)], 1),
        ([(0, 3), (2, 5)], 2),
        ([(0, None), (1, 2), (3, None), (4, 5)], 3),
    ],
)
def test_the_most_at_one_moment_are_counted(spans: list[tuple[int, int | None]], most: int) -> None:
    made = [WorkSpan(at(begin), None if end is None else at(end)) for begin, end in spans]
    assert most_at_once(made) == most


@pytest.mark.parametrize(
    ("calls", "excess"),
    [
        ([Call(0.0, 1.0), Call(1.0, 2.0)], 0.0),
        ([Call(0.0), Call(6.0)], 4.0),
        ([Call(0.0, 3.0), Call(1.0, 2.0), Call(2.5, 9.0), Call(9.5)], 1.0),
    ],
)
def test_the_longest_time_of_too_many_calls_is_found(calls: list[Call], excess: float) -> None:
    assert longest_excess(calls, limit=1, now=10.0) == excess
