"""The effect of each event on the state, beyond turns, actions and results."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.agent.loop.state import State
from perdure.agent.loop.status import TRUNCATED_REASON
from perdure.events.control import InterruptEvent, PauseEvent, StuckEvent
from perdure.events.event import AnyEvent, dump_event, parse_event
from perdure.events.usage import AMOUNTS, Usage
from tests.builders import (
    TIMESTAMP,
    action,
    agent,
    apply_events,
    condensation,
    error,
    error_event,
    id_of,
    observation,
    opened_event,
    opened_state,
    overflow,
    partial_message,
    rejection,
    spec_event,
    state_update,
    status_event,
    user,
)
from tests.logs import recall_event, system_message

INTERRUPT = InterruptEvent(timestamp=TIMESTAMP)
PAUSE = PauseEvent(timestamp=TIMESTAMP)
STUCK = StuckEvent(timestamp=TIMESTAMP, pattern="monologue", first_seq=3, last_seq=9, count=3)
USER_ASKS = overflow().model_copy(update={"source": "user"})


def working(*then: AnyEvent) -> State:
    return apply_events(opened_state(), user(), *then)


# Interrupts.


def test_an_interrupted_agent_waits_for_its_user() -> None:
    state = working(INTERRUPT)
    assert (state.status, state.reason) == ("idle", "interrupted by the user")
    assert (
        apply_events(state, user()).status
        == apply_events(state, status_event("resumed")).status
        == "running"
    )


def test_a_partial_response_does_not_end_the_turn() -> None:
    state = working(partial_message())
    assert (state.status, state.turn_open, state.iterations, state.response_count) == (
        "running",
        True,
        0,
        0,
    )
    assert state.view_events == apply_events(opened_state(), user()).view_events + 1
    assert apply_events(state, INTERRUPT, status_event("resumed")).status == "running"


def test_an_interrupt_takes_back_the_decision_to_finish() -> None:
    batch = [action("finish", "call_0"), action("write", "call_1")]
    state = working(*batch, observation(id_of(4), "finish"), INTERRUPT)
    assert (state.status, state.finish_call_seq) == ("idle", None)


def test_a_pause_is_not_ended_by_an_interrupt() -> None:
    assert working(PAUSE, INTERRUPT).status == "paused"


# Why it stands where it stands.


@pytest.mark.parametrize("event", [INTERRUPT, PAUSE, status_event("waiting_for_confirmation")])
def test_an_event_that_leaves_the_status_leaves_its_reason(event: AnyEvent) -> None:
    stopped, stuck = working(error_event("auth", "Set a key.")), working(STUCK)
    assert apply_events(stopped, event).reason == "auth: Set a key."
    assert apply_events(stuck, event).reason == "monologue: events 3 to 9"
    assert apply_events(working(agent()), INTERRUPT).reason is None


def test_a_newer_failure_is_the_reason() -> None:
    assert (
        working(error_event("auth"), error_event("budget", "No money.")).reason
        == "budget: No money."
    )


def test_a_reason_goes_with_its_status() -> None:
    assert working(error_event(), status_event("resumed")).reason is None
    assert working(INTERRUPT, user()).reason is None


# Condensing and what is shown.


def test_a_person_or_an_overflow_asks_for_a_smaller_view() -> None:
    assert working(USER_ASKS).condense_reason == "user"
    assert working(overflow()).condense_reason == "overflow"
    assert working(overflow(), USER_ASKS).condense_reason == "overflow"
    assert working(USER_ASKS, overflow()).condense_reason == "overflow"


@pytest.mark.parametrize("cause", [USER_ASKS, overflow()])
def test_condensing_is_asked_for_until_it_is_done_or_comes_to_nothing(cause: AnyEvent) -> None:
    assert working(cause, user(), PAUSE, opened_event("run-2")).condense_reason is not None
    for end in (condensation(3, 3), error_event("context_overflow")):
        assert working(cause, end).condense_reason is None


def test_a_requested_condensation_may_be_refused() -> None:
    refused = state_update("not_condensed", "There is nothing to condense yet.")
    assert working(USER_ASKS, refused).condense_reason is None
    assert working(overflow(), refused).condense_reason == "overflow"


def test_an_interrupt_takes_back_what_a_person_asked_to_condense() -> None:
    assert working(USER_ASKS, INTERRUPT).condense_reason is None
    assert working(overflow(), INTERRUPT).condense_reason == "overflow"


def test_overflows_are_counted_until_the_model_answers() -> None:
    state = working(overflow(), condensation(3, 3), overflow(), USER_ASKS)
    assert state.overflows == 2
    assert apply_events(state, agent()).overflows == 0
    assert apply_events(state, error_event("context_overflow")).overflows == 0
    summary = Usage(cost=0.5, purpose="condense")
    assert apply_events(state, condensation(4, 4), usage=summary).overflows == 2


def test_forgotten_events_leave_the_view() -> None:
    state = working(agent(), user(), agent(), user())
    assert state.view_events == 6
    less = apply_events(state, condensation(3, 5, size=state.view_tokens // 2))
    assert (less.view_events, less.view_tokens) == (3, state.view_tokens - state.view_tokens // 2)
    assert less.forgotten_seqs == ((3, 5),)
    summed = apply_events(state, condensation(3, 5, "In short."))
    assert summed.view_events == 4
    assert summed.view_tokens == state.view_tokens + 1


def test_forgotten_slots_are_kept_as_ranges() -> None:
    state = working(*[user() for _ in range(12)])
    for first, last, ranges in (
        (5, 6, ((5, 6),)),
        (9, 10, ((5, 6), (9, 10))),
        (7, 8, ((5, 10),)),
        (3, 12, ((3, 12),)),
    ):
        state = apply_events(state, condensation(first, last))
        assert state.forgotten_seqs == ranges


def test_the_view_never_has_fewer_than_no_events() -> None:
    state = apply_events(opened_state(), condensation(0, 99, size=10**6))
    assert (state.view_events, state.view_tokens) == (0, 0)


def test_only_events_of_the_prompt_are_counted() -> None:
    hidden: list[AnyEvent] = [
        opened_event(),
        spec_event(),
        PAUSE,
        INTERRUPT,
        STUCK,
        error_event(),
        overflow(),
    ]
    state = working()
    assert apply_events(state, *hidden).view_events == state.view_events
    events: list[AnyEvent] = [
        action("look"),
        observation(id_of(4)),
        error(None, "fly"),
        rejection(id_of(4)),
        system_message(),
        recall_event(),
        agent(),
        user(),
    ]
    assert apply_events(state, *events).view_events == state.view_events + len(events)
    assert (
        apply_events(state, *events).view_tokens
        > apply_events(state, *events[:-1]).view_tokens
        > state.view_tokens
    )


# What is noted.


def test_a_title_is_noted() -> None:
    assert working().title is None
    assert working(state_update("title", "Doors")).title == "Doors"
    assert working(state_update("title", "")).title == ""


def test_a_skill_is_remembered_once_and_in_order() -> None:
    state = working(
        recall_event("x", "b", "a"),
        recall_event("y", "a"),
        recall_event("z", "c", "b"),
        recall_event(),
    )
    assert state.shown_skills == ("b", "a", "c")


def test_the_agent_is_warned_once_a_turn() -> None:
    state = working(system_message(by="stuck"), system_message(by="limits"))
    assert state.warned_about == ("stuck", "limits")
    assert state.status == "running"
    for event in (user(), status_event("resumed"), spec_event()):
        assert apply_events(state, event).warned_about == ()


def test_resuming_begins_a_new_circle() -> None:
    state = working(action(), observation(id_of(4)))
    assert len(state.recent_events) == 2
    assert apply_events(state, PAUSE).recent_events
    assert apply_events(state, status_event("resumed")).recent_events == ()


def test_tool_traits_follow_the_prompt() -> None:
    assert opened_state().tool_traits.read_only == ("look", "finish")
    assert opened_state().tool_traits.polling == ()


# The bill.

bills = st.builds(
    Usage,
    prompt_tokens=st.integers(0, 99),
    completion_tokens=st.integers(0, 99),
    cached_tokens=st.integers(0, 9),
    cost=st.integers(0, 99).map(lambda quarters: quarters / 4),
    latency=st.integers(0, 9).map(lambda halves: halves / 2),
    model=st.sampled_from(["", "large", "small"]),
    purpose=st.sampled_from(["", "condense", "title", "delegate"]),
)


@given(st.lists(bills, max_size=8))
@settings(max_examples=40)
def test_usage_by_model_sums_to_the_total(paid: list[Usage]) -> None:
    state = working()
    for bill in paid:
        state = apply_events(state, agent(response=f"r-{state.next_seq}"), usage=bill)
    for name in AMOUNTS:
        total = sum(getattr(bill, name) for bill in paid)
        assert getattr(state.usage, name) == total
        assert sum(getattr(part, name) for part in state.usage_by_model.values()) == total
    chats = [bill for bill in paid if not bill.purpose]
    assert state.response_count == len(chats)
    assert state.last_usage == (chats[-1] if chats else Usage())


def test_usage_is_split_by_purpose_and_model() -> None:
    state = apply_events(working(), agent(), usage=Usage(cost=1.0, model="large"))
    state = apply_events(
        state, condensation(3, 3), usage=Usage(cost=0.5, model="m", purpose="condense")
    )
    state = apply_events(state, state_update("title", "t"), usage=Usage(cost=0.25, purpose="title"))
    costs = {name: bill.cost for name, bill in state.usage_by_model.items()}
    assert costs == {"chat large": 1.0, "condense m": 0.5, "title": 0.25}
    assert (state.usage.cost, state.iterations, state.last_usage.cost) == (1.75, 1, 1.0)


# What a newer writer wrote.


@pytest.mark.parametrize(
    "event",
    [
        condensation(3, 4, "In short."),
        recall_event("x", "a"),
        STUCK,
        PAUSE,
        USER_ASKS,
        error_event(),
        spec_event(),
        opened_event(),
        state_update("title", "t"),
        state_update("confirmed", [4]),
        user(),
        agent(),
        system_message(),
    ],
    ids=lambda event: event.kind,
)
def test_an_event_of_a_newer_writer_can_be_applied(event: AnyEvent) -> None:
    newer = parse_event({**dump_event(event), "new": 1})
    state = working(action("write"))
    then = apply_events(state, newer)
    assert then.next_seq == state.next_seq + 1
    assert then.forgotten_seqs == state.forgotten_seqs
    assert then.pending == state.pending


def test_a_turn_that_ends_with_half_an_answer_says_so() -> None:
    cut = agent("Half an").model_copy(update={"truncated": True})
    state = apply_events(opened_state(), user(), cut)
    assert (state.status, state.reason) == ("finished", TRUNCATED_REASON)
    assert apply_events(state, user(), agent()).reason is None
