"""The texts of steps as parts: whatever is seen of a text, and when, the parts add up to it."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.api.frames import DeltaFrame
from perdure.client.running_step import RunningStep
from perdure.events.content import Message, TextContent
from perdure.events.entry import Entry, Origin, make_entry
from perdure.events.messages import MessageEvent
from perdure.gateway.following.step_texts import StepTexts

RUN = "run-1"


def look(text: str, offset: int | None = 0, attempt: int = 1, **fields: str) -> RunningStep:
    step: dict[str, Any] = {"kind": "llm.chat", "activity_id": "5", "run_id": RUN, **fields}
    return RunningStep(attempt=attempt, text=text, offset=offset, **step)


def answer(text: str, activity: str = "5", run: str = RUN) -> Entry:
    message = Message(role="assistant", content=(TextContent(text=text),))
    event = MessageEvent(
        timestamp="2026-01-01T00:00:00.000000",
        source="agent",
        llm_message=message,
        llm_response_id="r",
    )
    return make_entry(7, event, Origin(run=run, activity=activity))


def put_together(parts: list[DeltaFrame]) -> str:
    """Put parts together as a client does."""
    text, attempt = "", 0
    for part in parts:
        if part.attempt > attempt:
            text, attempt = "", part.attempt
        text = text[: part.offset] + part.text
    return text


@pytest.mark.parametrize(
    ("looks", "expected"),
    [
        ([look("one")], [(0, 0, "one")]),
        ([look("one"), look("one")], [(0, 0, "one")]),
        ([look("one"), look("one two")], [(0, 0, "one"), (1, 3, " two")]),
        ([look(""), look("one")], [(0, 0, "one")]),
        ([look("one"), look("e two", offset=2)], [(0, 0, "one"), (1, 3, " two")]),
        ([look("one"), look("two", offset=10)], [(0, 0, "one"), (1, 10, "two")]),
        ([look("one two"), look("one too")], [(0, 0, "one two"), (1, 5, "oo")]),
        ([look("one two"), look("one")], [(0, 0, "one two"), (1, 3, "")]),
        ([look("tail", offset=90)], [(0, 90, "tail")]),
        ([look("one", offset=None), look("e two", offset=None)], [(0, 0, "one"), (1, 3, " two")]),
    ],
)
def test_a_part_says_where_it_begins(
    looks: list[RunningStep], expected: list[tuple[int, int, str]]
) -> None:
    texts = StepTexts()
    parts = [part for it in looks for part in texts.observe([it])]
    assert [(part.order, part.offset, part.text) for part in parts] == expected


def test_a_tool_of_which_only_the_end_is_known_has_what_is_new() -> None:
    texts = StepTexts()
    texts.observe([look("one two", kind="tool.call")])
    [part] = texts.observe([look("two three", kind="tool.call")])
    assert (part.offset, part.text) == (7, " three")


def test_a_new_attempt_begins_anew_and_never_has_a_lower_number() -> None:
    texts = StepTexts()
    [first] = texts.observe([look("one", attempt=3)])
    [lost] = texts.observe([look("", attempt=4)])
    [again] = texts.observe([look("two", attempt=4)])
    [elsewhere] = texts.observe([look("three", attempt=1)])
    parts = [first, lost, again, elsewhere]
    assert [(part.attempt, part.order, part.offset, part.text) for part in parts] == [
        (3, 0, 0, "one"),
        (4, 0, 0, ""),
        (4, 1, 0, "two"),
        (5, 0, 0, "three"),
    ]


@pytest.mark.parametrize(
    ("seen", "offset", "whole", "expected"),
    [
        ("one", 0, "one two", [(3, " two")]),
        ("one two", 0, "one two", []),
        ("one two", 0, "one", [(3, "")]),
        ("one two", 0, "one, two", [(3, ", two")]),
        ("two", 4, "one two", [(0, "one two")]),
    ],
)
def test_the_event_makes_the_text_whole(
    seen: str, offset: int, whole: str, expected: list[tuple[int, str]]
) -> None:
    texts = StepTexts()
    texts.observe([look(seen, offset=offset)])
    parts = texts.settle(answer(whole))
    assert [(part.offset, part.text) for part in parts] == expected
    assert texts.so_far() == []


def test_an_event_of_which_nothing_was_sent_has_no_parts() -> None:
    texts = StepTexts()
    texts.observe([look("")])
    assert texts.settle(answer("one")) == []


def test_a_look_that_is_older_than_the_event_is_passed_over() -> None:
    texts = StepTexts()
    texts.observe([look("one")])
    texts.settle(answer("one two", activity="5 partial"))
    assert texts.observe([look("one two")]) == []
    [part] = texts.observe([look("again", run_id="run-2")])
    assert part.text == "again"


def test_a_text_of_another_run_is_not_settled() -> None:
    texts = StepTexts()
    texts.observe([look("one")])
    assert texts.settle(answer("two", run="run-0")) == []
    assert [part.text for part in texts.so_far()] == ["one"]


def test_a_step_without_an_event_is_aborted_once_and_if_it_was_seen() -> None:
    texts = StepTexts()
    texts.observe([look("one"), look("", activity_id="6")])
    gone = texts.list_gone([look("one")])
    assert gone == ["6"]
    assert texts.abort(gone) == []
    assert [frame.item_id for frame in texts.abort(texts.list_gone([]))] == ["5"]
    assert texts.list_gone([]) == []


@given(st.text(min_size=1, max_size=300), st.integers(0, 2**32), st.booleans())
def test_the_parts_add_up_to_the_text(whole: str, seed: int, knows_offset: bool) -> None:
    chance = random.Random(seed)
    texts, parts = StepTexts(), list[DeltaFrame]()
    ends = sorted(chance.choices(range(len(whole) + 1), k=5))
    for end in ends:
        start = chance.choice([0, max(0, end - 20)]) if knows_offset else 0
        parts += texts.observe([look(whole[start:end], offset=start if knows_offset else None)])
        if parts and chance.random() < 0.5:
            late = [*texts.so_far()]
            assert [part.order for part in late] == [parts[-1].order]
    parts += texts.settle(answer(whole))
    if parts:
        assert put_together(parts) == whole
        assert [part.order for part in parts] == list(range(len(parts)))
