"""Deviations from the protocol that are planted into a stream: each is noticed by the judges."""

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from perdure.gateway.ag_ui.events import Event
from perdure.gateway.turns.parts import Part
from tests.gateway.ag_ui.judges import judge
from tests.gateway.ag_ui.test_projection import (
    CALLED,
    HANDED,
    MAY_HAND,
    RETURNED,
    SAID,
    THOUGHT,
    end,
    project,
)

STORY: list[Part] = [*SAID, THOUGHT, CALLED, RETURNED, end()]


def without(events: list[Event], kind: str) -> list[Event]:
    return [event for event in events if event["type"] != kind]


def with_fields(events: list[Event], kind: str, **fields: Any) -> list[Event]:
    return [{**event, **(fields if event["type"] == kind else {})} for event in events]


def swapped(events: list[Event], kind: str) -> list[Event]:
    """Return the events, of which the first of a kind comes one earlier."""
    place = next(n for n, event in enumerate(events) if event["type"] == kind)
    before, moved = events[place - 1 : place + 1]
    return [*events[: place - 1], moved, before, *events[place + 1 :]]


DEVIATIONS: dict[str, Callable[[list[Event]], list[Event]]] = {
    "no beginning": lambda events: without(events, "RUN_STARTED"),
    "two beginnings": lambda events: [events[0], *events],
    "no end": lambda events: events[:-1],
    "an event behind the end": lambda events: [*events, events[2]],
    "an end and an error": lambda events: [*events, {"type": "RUN_ERROR", "message": "No."}],
    "another run at the end": lambda events: with_fields(events, "RUN_FINISHED", runId="other"),
    "null where nothing is": lambda events: with_fields(events, "RUN_FINISHED", usage=None),
    "null in an interrupt": lambda events: with_fields(
        events,
        "RUN_FINISHED",
        outcome={"type": "interrupt", "interrupts": [{"id": "c", "reason": "r", "message": None}]},
    ),
    "an interrupt of nothing": lambda events: with_fields(
        events, "RUN_FINISHED", outcome={"type": "interrupt", "interrupts": []}
    ),
    "a field that nobody knows": lambda events: with_fields(events, "STEP_STARTED", seq=7),
    "an event that nobody knows": lambda events: with_fields(events, "STEP_STARTED", type="BEGUN"),
    "an open text": lambda events: without(events, "TEXT_MESSAGE_END"),
    "a text without a beginning": lambda events: without(events, "TEXT_MESSAGE_START"),
    "words before their beginning": lambda events: swapped(events, "TEXT_MESSAGE_CONTENT"),
    "an empty word": lambda events: with_fields(events, "TEXT_MESSAGE_CONTENT", delta=""),
    "an id that changes": lambda events: with_fields(events, "TEXT_MESSAGE_END", messageId="x"),
    "open reasoning": lambda events: without(events, "REASONING_MESSAGE_END"),
    "an open call": lambda events: without(events, "TOOL_CALL_END"),
    "a result before its call has ended": lambda events: swapped(events, "TOOL_CALL_RESULT"),
    "a result of nothing": lambda events: with_fields(events, "TOOL_CALL_RESULT", toolCallId="x"),
    "arguments that are cut off": lambda events: with_fields(events, "TOOL_CALL_ARGS", delta="{"),
    "an open step": lambda events: without(events, "STEP_FINISHED"),
    "no state": lambda events: without(events, "STATE_SNAPSHOT"),
    "a change of what is not there": lambda events: with_fields(
        events, "STATE_DELTA", delta=[{"op": "replace", "path": "/nothing", "value": 1}]
    ),
    "a role that nobody has": lambda events: with_fields(events, "TEXT_MESSAGE_START", role="ai"),
}


def test_the_stream_without_a_deviation_is_taken() -> None:
    judge(project(STORY))


@pytest.mark.parametrize("name", DEVIATIONS)
def test_a_deviation_is_noticed(name: str) -> None:
    with pytest.raises((AssertionError, ValidationError)):
        judge(DEVIATIONS[name](project(STORY)))


SUBAGENTS: list[tuple[list[Part], str]] = [
    ([HANDED, RETURNED], "SUBAGENT_STARTED"),
    ([HANDED, RETURNED], "SUBAGENT_FINISHED"),
    ([MAY_HAND], "SUBAGENT_ERROR"),
]


@pytest.mark.parametrize(("parts", "kind"), SUBAGENTS)
def test_a_sub_agent_that_does_not_begin_or_end_is_noticed(parts: list[Part], kind: str) -> None:
    events = project([*parts, end()])
    judge(events)
    with pytest.raises(AssertionError):
        judge(without(events, kind))
