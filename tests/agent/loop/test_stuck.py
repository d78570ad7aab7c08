"""Stuck agents are distinguished from agents that work, wait, or are being steered."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.agent.loop.inbox import StuckFinding
from perdure.agent.loop.stuck import (
    RecentEvent,
    add_recent,
    detect_stuck,
    warn_of_stuck,
)
from perdure.agent.policies import StuckThresholds
from perdure.events.content import Message
from perdure.events.control import InterruptEvent, PauseEvent
from perdure.events.event import Event
from perdure.events.messages import MessageEvent
from perdure.events.observations import MCPToolObservation
from perdure.events.summary import EventSummary
from perdure.events.tools import ObservationEvent
from tests.builders import (
    TIMESTAMP,
    action,
    agent,
    error,
    id_of,
    observation,
    rejection,
    spec_event,
    summaries_of,
    text,
    user,
)

USUAL = StuckThresholds()
ID = id_of(0)


def corrective(words: str = "Go on.") -> MessageEvent:
    message = Message(role="user", content=text(words))
    return MessageEvent(timestamp=TIMESTAMP, source="environment", llm_message=message)


def failure(words: str = "no such file", name: str = "look") -> ObservationEvent:
    """Make a result that is marked as a failure."""
    seen = MCPToolObservation(tool_name=name, content=text(words), is_error=True)
    return ObservationEvent(
        timestamp=TIMESTAMP, action_id=ID, tool_name=name, tool_call_id="call_1", observation=seen
    )


def traces(events: Sequence[Event], thresholds: StuckThresholds = USUAL) -> tuple[RecentEvent, ...]:
    recent: tuple[RecentEvent, ...] = ()
    for fact in summaries_of(*events):
        recent = add_recent(recent, fact, thresholds)
    return recent


def detect(
    events: Sequence[Event], waits: Sequence[str] = (), **thresholds: int
) -> StuckFinding | None:
    stuck_thresholds = StuckThresholds(**thresholds)
    return detect_stuck(traces(events, stuck_thresholds), stuck_thresholds, waits)


def warning_for(events: Sequence[Event], **thresholds: int) -> str | None:
    stuck_thresholds = StuckThresholds(**thresholds)
    warning = warn_of_stuck(traces(events, stuck_thresholds), stuck_thresholds)
    return warning.text if warning else None


def call_each(*results: Event) -> list[Event]:
    """The same action again and again, and what comes of it."""
    return [event for result in results for event in (action(), result)]


SAME: list[Event] = [action(), observation(ID)]
FAILING: list[Event] = [action(), error(ID)]
TO: list[Event] = [action("look"), observation(ID, "look")]
FRO: list[Event] = [action("write"), observation(ID, "write", "done")]


def test_the_same_action_with_the_same_observation_four_times_is_a_circle() -> None:
    assert detect([user(), *SAME * 3]) is None
    finding = StuckFinding(pattern="action_observation", first_seq=1, last_seq=8, count=4)
    assert detect([user(), *SAME * 4]) == finding


def test_an_agent_that_sees_something_new_is_not_stuck() -> None:
    assert detect(call_each(*[observation(ID, words=f"{nth} %") for nth in range(9)])) is None


def test_the_newest_events_count() -> None:
    assert detect([*SAME * 4, *FRO]) is None
    assert detect([*FRO, *SAME * 4]) is not None


def test_a_failing_action_is_warned_of_at_the_third_and_stuck_at_the_fourth() -> None:
    assert warning_for(FAILING * 2) is None
    warning = warning_for(FAILING * 3)
    assert warning is not None
    assert "`look` was called 3 times in a row" in warning
    assert detect(FAILING * 3) is None
    assert warning_for(FAILING * 4) is None
    finding = StuckFinding(pattern="action_observation", first_seq=0, last_seq=7, count=4)
    assert detect(FAILING * 4) == finding


def test_an_action_that_fails_in_other_words_every_time_is_stuck_too() -> None:
    finding = StuckFinding(pattern="action_error", first_seq=0, last_seq=7, count=4)
    assert detect(call_each(*[error(ID, words=f"line {nth}") for nth in range(4)])) == finding


def test_a_result_that_is_a_failure_counts_as_one() -> None:
    events = call_each(*[failure(f"try {nth}") for nth in range(4)])
    assert warning_for(events[:6]) is not None
    assert detect(events) is not None


def test_a_call_that_could_not_be_read_counts_by_its_text() -> None:
    unread: list[Event] = [action(valid=False, arguments="{"), error(None)]
    assert warning_for(unread * 3) is not None
    assert detect(unread * 4) is not None


def test_the_agent_is_warned_of_a_failure_once() -> None:
    three: list[Event] = [*FAILING * 3]
    assert warning_for(three) is not None
    assert warning_for([*three, corrective()]) is None
    assert warning_for([*three, corrective(), action()]) is None
    assert detect([*three, corrective()]) is None
    assert detect([*three, corrective(), *FAILING]) is not None


def test_the_agent_is_warned_again_of_another_failure() -> None:
    other: list[Event] = [action("write"), error(ID, "write")]
    assert warning_for([*FAILING * 3, corrective(), *FRO, *other * 3]) is not None


def test_three_messages_in_a_row_are_a_monologue_whatever_they_say() -> None:
    assert detect([agent("a"), agent("b")]) is None
    finding = StuckFinding(pattern="monologue", first_seq=1, last_seq=3, count=3)
    assert detect([user(), agent("a"), agent("b"), agent("c")]) == finding


def test_what_the_system_says_does_not_end_a_monologue() -> None:
    messages = [agent("a"), corrective(), agent("b"), corrective(), agent("c"), corrective()]
    assert detect(messages) is not None


@pytest.mark.parametrize(
    "between",
    [[user()], SAME, [PauseEvent(timestamp=TIMESTAMP)], [InterruptEvent(timestamp=TIMESTAMP)]],
    ids=["a person", "a deed", "a pause", "an interrupt"],
)
def test_a_monologue_is_ended_by(between: list[Event]) -> None:
    assert detect([agent(), agent(), *between, agent()]) is None


def test_bookkeeping_does_not_count() -> None:
    """An event that nobody acts by neither ends a circle nor takes up room."""
    assert detect([*SAME, *[spec_event()] * 30] * 4) is not None
    assert detect([agent(), spec_event(), agent(), spec_event(), agent()]) is not None


def test_two_pairs_that_alternate_over_six_are_a_circle() -> None:
    assert detect([*(TO + FRO) * 2, *TO]) is None
    finding = StuckFinding(pattern="alternating", first_seq=0, last_seq=11, count=6)
    assert detect((TO + FRO) * 3) == finding


def test_three_things_in_turn_are_no_alternation() -> None:
    third: list[Event] = [action("look", arguments='{"a": 1}'), observation(ID)]
    assert detect((TO + FRO + third) * 3) is None


def test_calls_and_results_of_a_batch_are_paired_by_position() -> None:
    calls: list[Event] = [action(call_id=f"call_{nth}") for nth in range(4)]
    seen: list[Event] = [observation(ID, call_id=f"call_{nth}") for nth in range(4)]
    finding = StuckFinding(pattern="action_observation", first_seq=0, last_seq=7, count=4)
    assert detect(calls + seen) == finding


def test_a_rejection_is_no_repetition() -> None:
    assert detect(call_each(*[rejection(ID)] * 9)) is None


def test_a_message_of_a_person_starts_over() -> None:
    assert detect([*SAME * 4, user()]) is None
    assert detect([*SAME * 3, user(), *SAME * 3]) is None
    assert traces([*SAME, user()]) == ()


def test_what_the_system_says_does_not_start_over() -> None:
    assert detect([*SAME * 3, corrective(), *SAME]) is not None


def test_a_polling_tool_may_be_called_repeatedly() -> None:
    assert detect(SAME * 9, waits=["look"]) is None
    assert detect((TO + FRO) * 5, waits=["look"]) is None
    assert detect(call_each(*[failure("not yet")] * 9), waits=["look"]) is None
    assert detect(SAME * 9, waits=["write"]) is not None


def test_invalid_calls_of_a_polling_tool_count_as_failures() -> None:
    failing = call_each(*[error(ID, words=f"try {nth}") for nth in range(4)])
    assert detect(failing, waits=["look"]) is not None


@pytest.mark.parametrize(
    ("off", "events"),
    [
        ({"action_observation": 0}, SAME * 9),
        ({"action_observation": 0, "action_error": 0}, FAILING * 9),
        ({"monologue": 0}, [agent()] * 9),
        ({"alternating": 0}, (TO + FRO) * 5),
        ({"window": 0}, SAME * 9),
    ],
)
def test_a_disabled_pattern_is_not_detected(off: dict[str, int], events: list[Event]) -> None:
    assert detect(events) is not None
    assert detect(events, waits=(), **off) is None
    assert warning_for(events, **off) is None


def test_thresholds_are_kept() -> None:
    assert detect(SAME * 2, action_observation=2) is not None
    assert detect(SAME * 4, action_observation=5) is None
    assert warning_for(FAILING, action_error=1) is not None
    assert detect(FAILING * 2, action_error=1) is not None
    assert detect([*TO, *FRO, *TO], alternating=3) is not None
    assert detect([*TO, *FRO], alternating=1) is None


def test_one_pair_over_and_over_is_judged_by_its_own_threshold() -> None:
    assert detect(SAME * 9, action_observation=10) is None
    refused = [*SAME * 3, action(), rejection(ID), *SAME * 3]
    finding = StuckFinding(pattern="alternating", first_seq=1, last_seq=13, count=6)
    assert detect(refused) == finding


def test_a_trace_is_small() -> None:
    recent = traces([*SAME * 2, *FAILING])
    assert max(len(trace.model_dump_json()) for trace in recent) < 160


EVENTS: st.SearchStrategy[Event] = st.sampled_from(
    [
        *(action(), action("write"), observation(ID), observation(ID, "write", "done")),
        *(error(ID), error(ID, words="again"), failure(), rejection(ID)),
        *(agent(), corrective(), user(), PauseEvent(timestamp=TIMESTAMP), spec_event()),
    ]
)
# A person's word would start over too often for a circle to come about.
HISTORIES = st.lists(EVENTS, max_size=40) | st.lists(
    EVENTS.filter(lambda event: event.source != "user"), max_size=40
)
THRESHOLDS = st.builds(
    StuckThresholds,
    action_observation=st.integers(0, 4),
    action_error=st.integers(0, 3),
    monologue=st.integers(0, 3),
    alternating=st.integers(0, 6),
    window=st.integers(0, 24),
)
WAITS = st.sampled_from([(), ("look",), ("look", "write")])


@given(HISTORIES, THRESHOLDS, WAITS)
def test_evidence_lies_within_the_remembered_events(
    history: list[Event], thresholds: StuckThresholds, waits: tuple[str, ...]
) -> None:
    recent = traces(history, thresholds)
    assert len(recent) <= thresholds.window
    finding = detect_stuck(recent, thresholds, waits)
    if finding is None:
        return
    threshold = getattr(thresholds, finding.pattern)
    assert finding.count >= threshold > 0
    assert recent[0].seq <= finding.first_seq <= finding.last_seq <= recent[-1].seq
    evidence = [trace for trace in recent if finding.first_seq <= trace.seq <= finding.last_seq]
    assert len(evidence) >= finding.count * (1 if finding.pattern == "monologue" else 2)


@given(HISTORIES, THRESHOLDS)
def test_what_came_before_a_persons_message_does_not_matter(
    history: list[Event], thresholds: StuckThresholds
) -> None:
    facts = summaries_of(*history, user(), *history)

    def after(facts: Sequence[EventSummary]) -> tuple[RecentEvent, ...]:
        recent: tuple[RecentEvent, ...] = ()
        for fact in facts:
            recent = add_recent(recent, fact, thresholds)
        return recent

    assert after(facts) == after(facts[len(history) :])


@given(HISTORIES, THRESHOLDS, WAITS)
def test_detection_uses_remembered_events_only(
    history: list[Event], thresholds: StuckThresholds, waits: tuple[str, ...]
) -> None:
    recent = traces(history, thresholds)
    copies = tuple(RecentEvent.model_validate_json(trace.model_dump_json()) for trace in recent)
    later: list[Any] = [trace.model_copy(update={"seq": trace.seq + 1_000}) for trace in recent]
    finding, again = (
        detect_stuck(recent, thresholds, waits),
        detect_stuck(copies, thresholds, waits),
    )
    assert finding == again
    assert (
        warn_of_stuck(recent, thresholds)
        == warn_of_stuck(copies, thresholds)
        == warn_of_stuck(later, thresholds)
    )
    moved = detect_stuck(later, thresholds, waits)
    assert (finding is None) == (moved is None)


@given(HISTORIES, THRESHOLDS)
def test_the_same_failures_never_both_warn_and_stop_the_agent(
    history: list[Event], thresholds: StuckThresholds
) -> None:
    recent = traces(history, thresholds)
    finding = detect_stuck(recent, thresholds.model_copy(update={"action_observation": 0}))
    if warn_of_stuck(recent, thresholds) is not None:
        assert finding is None or finding.pattern != "action_error"
