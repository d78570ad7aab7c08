"""An agent that goes in circles is told apart from one that works, waits, or is being steered."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.spec import StuckThresholds
from agent.stuck import Evidence, Trace, nudge, remember, verdict
from events.content import Message
from events.control import InterruptEvent, PauseEvent
from events.digest import Digest
from events.event import Event
from events.messages import MessageEvent
from events.observations import MCPToolObservation
from events.tools import ObservationEvent
from tests.builders import (
    WHEN,
    action,
    agent,
    configured,
    digests,
    error,
    id_of,
    observation,
    rejection,
    text,
    user,
)

USUAL = StuckThresholds()
ID = id_of(0)


def corrective(words: str = "Go on.") -> MessageEvent:
    said = Message(role="user", content=text(words))
    return MessageEvent(timestamp=WHEN, source="environment", llm_message=said)


def failure(words: str = "no such file", name: str = "look") -> ObservationEvent:
    """A result that says of itself that it is a failure."""
    seen = MCPToolObservation(tool_name=name, content=text(words), is_error=True)
    return ObservationEvent(
        timestamp=WHEN, action_id=ID, tool_name=name, tool_call_id="call_1", observation=seen
    )


def traces(events: Sequence[Event], thresholds: StuckThresholds = USUAL) -> tuple[Trace, ...]:
    recent: tuple[Trace, ...] = ()
    for fact in digests(*events):
        recent = remember(recent, fact, thresholds)
    return recent


def judged(
    events: Sequence[Event], waits: Sequence[str] = (), **thresholds: int
) -> Evidence | None:
    asked = StuckThresholds(**thresholds)
    return verdict(traces(events, asked), asked, waits)


def told(events: Sequence[Event], **thresholds: int) -> str | None:
    asked = StuckThresholds(**thresholds)
    return nudge(traces(events, asked), asked)


def in_turn(*results: Event) -> list[Event]:
    """The same action again and again, and what comes of it."""
    return [event for result in results for event in (action(), result)]


SAME: list[Event] = [action(), observation(ID)]
FAILING: list[Event] = [action(), error(ID)]
TO: list[Event] = [action("look"), observation(ID, "look")]
FRO: list[Event] = [action("write"), observation(ID, "write", "done")]


def test_the_same_action_with_the_same_observation_four_times_is_a_circle() -> None:
    assert judged([user(), *SAME * 3]) is None
    found = Evidence(pattern="action_observation", first_seq=1, last_seq=8, count=4)
    assert judged([user(), *SAME * 4]) == found


def test_an_agent_that_sees_something_new_is_not_stuck() -> None:
    assert judged(in_turn(*[observation(ID, words=f"{nth} %") for nth in range(9)])) is None


def test_the_newest_events_count() -> None:
    assert judged([*SAME * 4, *FRO]) is None
    assert judged([*FRO, *SAME * 4]) is not None


def test_a_failing_action_is_told_of_at_the_third_and_stuck_at_the_fourth() -> None:
    assert told(FAILING * 2) is None
    said = told(FAILING * 3)
    assert said is not None
    assert "`look` was called 3 times in a row" in said
    assert judged(FAILING * 3) is None
    assert told(FAILING * 4) is None
    found = Evidence(pattern="action_observation", first_seq=0, last_seq=7, count=4)
    assert judged(FAILING * 4) == found


def test_an_action_that_fails_in_other_words_every_time_is_stuck_too() -> None:
    found = Evidence(pattern="action_error", first_seq=0, last_seq=7, count=4)
    assert judged(in_turn(*[error(ID, words=f"line {nth}") for nth in range(4)])) == found


def test_a_result_that_is_a_failure_counts_as_one() -> None:
    events = in_turn(*[failure(f"try {nth}") for nth in range(4)])
    assert told(events[:6]) is not None
    assert judged(events) is not None


def test_a_call_that_could_not_be_read_counts_by_its_text() -> None:
    unread: list[Event] = [action(valid=False, arguments="{"), error(None)]
    assert told(unread * 3) is not None
    assert judged(unread * 4) is not None


def test_the_agent_is_told_once() -> None:
    three: list[Event] = [*FAILING * 3]
    assert told(three) is not None
    assert told([*three, corrective()]) is None
    assert told([*three, corrective(), action()]) is None
    assert judged([*three, corrective()]) is None
    assert judged([*three, corrective(), *FAILING]) is not None


def test_the_agent_is_told_again_of_another_circle() -> None:
    other: list[Event] = [action("write"), error(ID, "write")]
    assert told([*FAILING * 3, corrective(), *FRO, *other * 3]) is not None


def test_three_messages_in_a_row_are_a_monologue_whatever_they_say() -> None:
    assert judged([agent("a"), agent("b")]) is None
    found = Evidence(pattern="monologue", first_seq=1, last_seq=3, count=3)
    assert judged([user(), agent("a"), agent("b"), agent("c")]) == found


def test_what_the_system_says_does_not_end_a_monologue() -> None:
    said = [agent("a"), corrective(), agent("b"), corrective(), agent("c"), corrective()]
    assert judged(said) is not None


@pytest.mark.parametrize(
    "between",
    [[user()], SAME, [PauseEvent(timestamp=WHEN)], [InterruptEvent(timestamp=WHEN)]],
    ids=["a person", "a deed", "a pause", "an interrupt"],
)
def test_a_monologue_is_ended_by(between: list[Event]) -> None:
    assert judged([agent(), agent(), *between, agent()]) is None


def test_bookkeeping_does_not_count() -> None:
    """An event that nobody acts by neither ends a circle nor takes up room."""
    assert judged([*SAME, *[configured()] * 30] * 4) is not None
    assert judged([agent(), configured(), agent(), configured(), agent()]) is not None


def test_two_pairs_that_alternate_over_six_are_a_circle() -> None:
    assert judged([*(TO + FRO) * 2, *TO]) is None
    found = Evidence(pattern="alternating", first_seq=0, last_seq=11, count=6)
    assert judged((TO + FRO) * 3) == found


def test_three_things_in_turn_are_no_alternation() -> None:
    third: list[Event] = [action("look", arguments='{"a": 1}'), observation(ID)]
    assert judged((TO + FRO + third) * 3) is None


def test_a_batch_and_its_results_are_gathered_on_their_own() -> None:
    calls: list[Event] = [action(call_id=f"call_{nth}") for nth in range(4)]
    seen: list[Event] = [observation(ID, call_id=f"call_{nth}") for nth in range(4)]
    found = Evidence(pattern="action_observation", first_seq=0, last_seq=7, count=4)
    assert judged(calls + seen) == found


def test_a_person_who_says_no_is_no_circle() -> None:
    assert judged(in_turn(*[rejection(ID)] * 9)) is None


def test_a_message_of_a_person_starts_over() -> None:
    assert judged([*SAME * 4, user()]) is None
    assert judged([*SAME * 3, user(), *SAME * 3]) is None
    assert traces([*SAME, user()]) == ()


def test_what_the_system_says_does_not_start_over() -> None:
    assert judged([*SAME * 3, corrective(), *SAME]) is not None


def test_a_tool_that_one_waits_with_may_be_called_again_and_again() -> None:
    assert judged(SAME * 9, waits=["look"]) is None
    assert judged((TO + FRO) * 5, waits=["look"]) is None
    assert judged(in_turn(*[failure("not yet")] * 9), waits=["look"]) is None
    assert judged(SAME * 9, waits=["write"]) is not None


def test_a_tool_that_one_waits_with_must_at_least_be_called_rightly() -> None:
    failing = in_turn(*[error(ID, words=f"try {nth}") for nth in range(4)])
    assert judged(failing, waits=["look"]) is not None


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
def test_nothing_is_found_once_it_is_switched_off(off: dict[str, int], events: list[Event]) -> None:
    assert judged(events) is not None
    assert judged(events, waits=(), **off) is None
    assert told(events, **off) is None


def test_thresholds_are_kept() -> None:
    assert judged(SAME * 2, action_observation=2) is not None
    assert judged(SAME * 4, action_observation=5) is None
    assert told(FAILING, action_error=1) is not None
    assert judged(FAILING * 2, action_error=1) is not None
    assert judged([*TO, *FRO, *TO], alternating=3) is not None
    assert judged([*TO, *FRO], alternating=1) is None


def test_one_pair_over_and_over_is_judged_by_its_own_threshold() -> None:
    assert judged(SAME * 9, action_observation=10) is None
    refused = [*SAME * 3, action(), rejection(ID), *SAME * 3]
    found = Evidence(pattern="alternating", first_seq=1, last_seq=13, count=6)
    assert judged(refused) == found


def test_a_trace_is_small() -> None:
    recent = traces([*SAME * 2, *FAILING])
    assert max(len(trace.model_dump_json()) for trace in recent) < 160


EVENTS: st.SearchStrategy[Event] = st.sampled_from(
    [
        *(action(), action("write"), observation(ID), observation(ID, "write", "done")),
        *(error(ID), error(ID, words="again"), failure(), rejection(ID)),
        *(agent(), corrective(), user(), PauseEvent(timestamp=WHEN), configured()),
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
def test_evidence_is_enough_and_lies_in_what_is_remembered(
    history: list[Event], thresholds: StuckThresholds, waits: tuple[str, ...]
) -> None:
    recent = traces(history, thresholds)
    assert len(recent) <= thresholds.window
    found = verdict(recent, thresholds, waits)
    if found is None:
        return
    asked = getattr(thresholds, found.pattern)
    assert found.count >= asked > 0
    assert recent[0].seq <= found.first_seq <= found.last_seq <= recent[-1].seq
    shown = [trace for trace in recent if found.first_seq <= trace.seq <= found.last_seq]
    assert len(shown) >= found.count * (1 if found.pattern == "monologue" else 2)


@given(HISTORIES, THRESHOLDS)
def test_what_came_before_a_persons_message_does_not_matter(
    history: list[Event], thresholds: StuckThresholds
) -> None:
    facts = digests(*history, user(), *history)

    def after(told: Sequence[Digest]) -> tuple[Trace, ...]:
        recent: tuple[Trace, ...] = ()
        for fact in told:
            recent = remember(recent, fact, thresholds)
        return recent

    assert after(facts) == after(facts[len(history) :])


@given(HISTORIES, THRESHOLDS, WAITS)
def test_the_verdict_knows_nothing_but_what_is_remembered(
    history: list[Event], thresholds: StuckThresholds, waits: tuple[str, ...]
) -> None:
    recent = traces(history, thresholds)
    kept = tuple(Trace.model_validate_json(trace.model_dump_json()) for trace in recent)
    later: list[Any] = [trace.model_copy(update={"seq": trace.seq + 1_000}) for trace in recent]
    found, again = verdict(recent, thresholds, waits), verdict(kept, thresholds, waits)
    assert found == again
    assert nudge(recent, thresholds) == nudge(kept, thresholds) == nudge(later, thresholds)
    moved = verdict(later, thresholds, waits)
    assert (found is None) == (moved is None)


@given(HISTORIES, THRESHOLDS)
def test_an_agent_is_never_told_and_stuck_of_the_same_failures(
    history: list[Event], thresholds: StuckThresholds
) -> None:
    recent = traces(history, thresholds)
    found = verdict(recent, thresholds.model_copy(update={"action_observation": 0}))
    if nudge(recent, thresholds) is not None:
        assert found is None or found.pattern != "action_error"
