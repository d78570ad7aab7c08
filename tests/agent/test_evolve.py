"""What each event means for the state, beyond turns, actions and their answers."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.evolve import COUNTED
from agent.state import State
from events.control import InterruptEvent, PauseEvent, StuckEvent
from events.event import AnyEvent, event_from, fields_of
from events.usage import Usage
from tests.builders import (
    WHEN,
    action,
    after,
    agent,
    condensation,
    configured,
    error,
    failed,
    id_of,
    observation,
    opened,
    opening,
    overflow,
    partial,
    rejection,
    status,
    updated,
    user,
)
from tests.logs import recall, told

INTERRUPT = InterruptEvent(timestamp=WHEN)
PAUSE = PauseEvent(timestamp=WHEN)
STUCK = StuckEvent(timestamp=WHEN, pattern="monologue", first_seq=3, last_seq=9, count=3)
USER_ASKS = overflow().model_copy(update={"source": "user"})


def working(*then: AnyEvent) -> State:
    return after(opening(), user(), *then)


# Interrupts.


def test_an_interrupted_agent_waits_for_its_user() -> None:
    state = working(INTERRUPT)
    assert (state.status, state.reason) == ("idle", "interrupted by the user")
    assert after(state, user()).status == after(state, status("resumed")).status == "running"


def test_the_words_of_an_answer_that_was_stopped_do_not_end_the_turn() -> None:
    state = working(partial())
    assert (state.status, state.owes, state.iterations, state.answers) == ("running", True, 0, 0)
    assert state.shown == after(opening(), user()).shown + 1
    assert after(state, INTERRUPT, status("resumed")).status == "running"


def test_an_interrupt_takes_back_the_decision_to_finish() -> None:
    batch = [action("finish", "call_0"), action("write", "call_1")]
    state = working(*batch, observation(id_of(4), "finish"), INTERRUPT)
    assert (state.status, state.finish) == ("idle", None)


def test_a_pause_is_not_ended_by_an_interrupt() -> None:
    assert working(PAUSE, INTERRUPT).status == "paused"


# Why it stands where it stands.


@pytest.mark.parametrize("event", [INTERRUPT, PAUSE, status("waiting_for_confirmation")])
def test_what_changes_no_status_leaves_its_reason_alone(event: AnyEvent) -> None:
    stopped, stuck = working(failed("auth", "Set a key.")), working(STUCK)
    assert after(stopped, event).reason == "auth: Set a key."
    assert after(stuck, event).reason == "monologue: events 3 to 9"
    assert after(working(agent()), INTERRUPT).reason is None


def test_a_newer_failure_is_the_reason() -> None:
    assert working(failed("auth"), failed("budget", "No money.")).reason == "budget: No money."


def test_a_reason_goes_with_its_status() -> None:
    assert working(failed(), status("resumed")).reason is None
    assert working(INTERRUPT, user()).reason is None


# Condensing and what is shown.


def test_a_person_or_an_overflow_asks_for_a_smaller_view() -> None:
    assert working(USER_ASKS).condense == "user"
    assert working(overflow()).condense == "overflow"
    assert working(overflow(), USER_ASKS).condense == "overflow"
    assert working(USER_ASKS, overflow()).condense == "overflow"


@pytest.mark.parametrize("asked", [USER_ASKS, overflow()])
def test_condensing_is_asked_for_until_it_is_done_or_comes_to_nothing(asked: AnyEvent) -> None:
    assert working(asked, user(), PAUSE, opened("run-2")).condense is not None
    for end in (condensation(3, 3), failed("context_overflow")):
        assert working(asked, end).condense is None


def test_what_a_person_asks_for_may_be_refused() -> None:
    refused = updated("not_condensed", "There is nothing to condense yet.")
    assert working(USER_ASKS, refused).condense is None
    assert working(overflow(), refused).condense == "overflow"


def test_an_interrupt_takes_back_what_a_person_asked_to_condense() -> None:
    assert working(USER_ASKS, INTERRUPT).condense is None
    assert working(overflow(), INTERRUPT).condense == "overflow"


def test_overflows_are_counted_until_the_model_answers() -> None:
    state = working(overflow(), condensation(3, 3), overflow(), USER_ASKS)
    assert state.overflows == 2
    assert after(state, agent()).overflows == 0
    assert after(state, failed("context_overflow")).overflows == 0
    summary = Usage(cost=0.5, purpose="condense")
    assert after(state, condensation(4, 4), usage=summary).overflows == 2


def test_what_is_forgotten_is_shown_no_more() -> None:
    state = working(agent(), user(), agent(), user())
    assert state.shown == 6
    less = after(state, condensation(3, 5, size=state.tokens // 2))
    assert (less.shown, less.tokens) == (3, state.tokens - state.tokens // 2)
    assert less.forgotten == ((3, 5),)
    summed = after(state, condensation(3, 5, "In short."))
    assert summed.shown == 4
    assert summed.tokens == state.tokens + 1


def test_forgotten_slots_are_kept_as_ranges() -> None:
    state = working(*[user() for _ in range(12)])
    for first, last, ranges in (
        (5, 6, ((5, 6),)),
        (9, 10, ((5, 6), (9, 10))),
        (7, 8, ((5, 10),)),
        (3, 12, ((3, 12),)),
    ):
        state = after(state, condensation(first, last))
        assert state.forgotten == ranges


def test_more_cannot_be_forgotten_than_there_is() -> None:
    state = after(opening(), condensation(0, 99, size=10**6))
    assert (state.shown, state.tokens) == (0, 0)


def test_condensing_helps_against_having_tried_in_vain() -> None:
    state = working().model_copy(update={"hopeless": 99})
    assert after(state, user(), agent()).hopeless == 99
    assert after(state, condensation(3, 3)).hopeless == 0


def test_only_what_a_model_is_shown_is_counted() -> None:
    hidden: list[AnyEvent] = [opened(), configured(), PAUSE, INTERRUPT, STUCK, failed(), overflow()]
    state = working()
    assert after(state, *hidden).shown == state.shown
    shown: list[AnyEvent] = [
        action("look"),
        observation(id_of(4)),
        error(None, "fly"),
        rejection(id_of(4)),
        told(),
        recall(),
        agent(),
        user(),
    ]
    assert after(state, *shown).shown == state.shown + len(shown)
    assert after(state, *shown).tokens > after(state, *shown[:-1]).tokens > state.tokens


# What is noted.


def test_a_title_is_noted() -> None:
    assert working().title is None
    assert working(updated("title", "Doors")).title == "Doors"
    assert working(updated("title", "")).title == ""


def test_a_skill_is_remembered_once_and_in_order() -> None:
    state = working(recall("x", "b", "a"), recall("y", "a"), recall("z", "c", "b"), recall())
    assert state.skills == ("b", "a", "c")


def test_what_the_agent_was_told_is_told_once_a_turn() -> None:
    state = working(told(by="stuck"), told(by="limits"))
    assert state.told == ("stuck", "limits")
    assert state.status == "running"
    for event in (user(), status("resumed"), configured()):
        assert after(state, event).told == ()


def test_resuming_begins_a_new_circle() -> None:
    state = working(action(), observation(id_of(4)))
    assert len(state.recent) == 2
    assert after(state, PAUSE).recent
    assert after(state, status("resumed")).recent == ()


def test_tools_are_known_by_what_they_are_like() -> None:
    assert opening().tools.read_only == ("look", "finish")
    assert opening().tools.waits == ()


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
def test_what_was_spent_on_each_sums_to_what_was_spent(paid: list[Usage]) -> None:
    state = working()
    for bill in paid:
        state = after(state, agent(response=f"r-{state.next_seq}"), usage=bill)
    for name in COUNTED:
        total = sum(getattr(bill, name) for bill in paid)
        assert getattr(state.spent, name) == total
        assert sum(getattr(part, name) for part in state.spent_on.values()) == total
    chats = [bill for bill in paid if not bill.purpose]
    assert state.answers == len(chats)
    assert state.last == (chats[-1] if chats else Usage())


def test_what_was_spent_is_told_by_purpose_and_model() -> None:
    state = after(working(), agent(), usage=Usage(cost=1.0, model="large"))
    state = after(state, condensation(3, 3), usage=Usage(cost=0.5, model="m", purpose="condense"))
    state = after(state, updated("title", "t"), usage=Usage(cost=0.25, purpose="title"))
    costs = {name: bill.cost for name, bill in state.spent_on.items()}
    assert costs == {"chat large": 1.0, "condense m": 0.5, "title": 0.25}
    assert (state.spent.cost, state.iterations, state.last.cost) == (1.75, 1, 1.0)


# What a newer writer wrote.


@pytest.mark.parametrize(
    "event",
    [
        condensation(3, 4, "In short."),
        recall("x", "a"),
        STUCK,
        PAUSE,
        USER_ASKS,
        failed(),
        configured(),
        opened(),
        updated("title", "t"),
        updated("confirmed", [4]),
        user(),
        agent(),
        told(),
    ],
    ids=lambda event: event.kind,
)
def test_an_event_of_a_newer_writer_can_be_taken_in(event: AnyEvent) -> None:
    newer = event_from({**fields_of(event), "new": 1})
    state = working(action("write"))
    then = after(state, newer)
    assert then.next_seq == state.next_seq + 1
    assert then.forgotten == state.forgotten
    assert then.pending == state.pending
