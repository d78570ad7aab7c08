"""The next step, and the order of precedence among steps."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_core import to_json

from perdure.agent.loop.decide import (
    MAX_RECORD_BYTES,
    MAX_RECORD_ITEMS,
    NO_NOTES,
    STOPPED_REASON,
    decide,
    select_items,
)
from perdure.agent.loop.inbox import (
    MAX_MESSAGE_BYTES,
    AgentWarning,
    CloseRequest,
    InboxItem,
    PauseRequest,
    RefusedInput,
    Rejection,
    ResumeRequest,
    StuckFinding,
    UserMessage,
    find_message_error,
    json_size,
)
from perdure.agent.loop.state import RunNotes, State, note_lost_call, postpone_condensing
from perdure.agent.loop.steps import (
    Act,
    Condense,
    Delegate,
    GenerateTitle,
    Prepare,
    Record,
    Refusal,
    ResolveLostCall,
    Step,
    Think,
)
from perdure.agent.policies import StuckThresholds
from perdure.agent.spec import ModelSpec, SummaryCondenser
from perdure.events.control import InterruptEvent, PauseEvent
from perdure.events.event import AnyEvent
from perdure.events.usage import Usage
from tests.agent.recording import apply_requests, record_next
from tests.builders import (
    SPEC,
    TIMESTAMP,
    action,
    agent,
    apply_events,
    condensation,
    error,
    error_event,
    id_of,
    lose_call,
    observation,
    opened_event,
    opened_state,
    overflow,
    prompt,
    spec_event,
    state_update,
    status_event,
    summaries_of,
    user,
)
from tests.logs import recall_event

PAUSE = PauseEvent(timestamp=TIMESTAMP)
USER_ASKS = overflow().model_copy(update={"source": "user"})


def with_spec(**fields: Any) -> State:
    """Open a conversation with a message, under a spec with these fields."""
    return apply_events(opened_state(SPEC.model_copy(update=fields)), user())


def calls(*names: str) -> list[AnyEvent]:
    return [action(name, f"call_{nth}") for nth, name in enumerate(names)]


def only_step(state: State, notes: RunNotes = NO_NOTES) -> Step:
    [step] = decide(state, (), notes=notes)
    return step


# What goes before what.


def test_a_conversation_waits_for_its_first_message() -> None:
    assert decide(opened_state(), ()) == ()


def test_the_inbox_is_recorded_before_everything_but_a_lost_call() -> None:
    waiting = (UserMessage(text="hi"), PauseRequest())
    first = Record(items=waiting, from_inbox=2, spec_seq=1, shown_skills=None)
    assert decide(State(), waiting) == (first.model_copy(update={"spec_seq": 0}),)
    assert decide(opened_state(), waiting) == (first,)
    busy = apply_events(opened_state(), user(), *calls("write"))
    for state in (busy, apply_events(busy, PAUSE), apply_events(busy, USER_ASKS)):
        assert decide(state, waiting) == (first.model_copy(update={"shown_skills": ()}),)
    resolution = ResolveLostCall(action_seq=4, detail="gone")
    assert decide(lose_call(busy, 4, "gone"), waiting) == (resolution,)
    assert decide(busy, waiting, notes=note_lost_call(RunNotes(), 4, "gone")) == (resolution,)


def test_recalled_skills_are_not_recalled_with_the_next_message() -> None:
    state = apply_events(opened_state(), user(), recall_event("Be brief.", "brevity"))
    [step] = decide(state, [UserMessage(text="hi")])
    assert isinstance(step, Record)
    assert step.shown_skills == ("brevity",)


@pytest.mark.parametrize("then", [[], [PAUSE], [error_event()], [status_event("closed")], [user()]])
def test_a_lost_call_is_resolved_in_every_status(then: list[AnyEvent]) -> None:
    state = apply_events(opened_state(), user(), *calls("look", "write"))
    resolution = ResolveLostCall(action_seq=5, detail="gone")
    assert only_step(apply_events(lose_call(state, 5, "gone"), *then)) == resolution
    notes = note_lost_call(RunNotes(), 5, "gone")
    assert only_step(apply_events(state, *then), notes) == resolution


@pytest.mark.parametrize("then", [PAUSE, error_event(), status_event("closed"), agent()])
def test_nothing_happens_at_rest(then: AnyEvent) -> None:
    assert decide(apply_events(opened_state(), user(), *calls("look"), then), ()) == ()


def test_actions_that_an_interrupt_did_not_know_of_yet_are_rejected_too() -> None:
    """The answer that asked for them came between the interrupt and its record."""
    state = apply_events(
        opened_state(), user(), *calls("look", "write"), InterruptEvent(timestamp=TIMESTAMP)
    )
    assert only_step(state) == Record(
        items=(), refusal=Refusal(action_seqs=(4, 5), reason=STOPPED_REASON)
    )


def test_a_call_rejected_twice_is_answered_once() -> None:
    state = apply_events(opened_state(), user(), *calls("look", "write"))
    both = (Rejection(actions=(4, 5), reason="no"), Rejection(actions=(5, 9), reason="never"))
    [step] = decide(state, both)
    assert isinstance(step, Record)
    assert step.from_inbox == 2
    assert [item.actions for item in step.items if isinstance(item, Rejection)] == [(4, 5), ()]


def test_actions_are_taken_in_the_order_of_the_calls() -> None:
    state = apply_events(opened_state(), user(), *calls("look", "write"))
    assert only_step(state) == Act(action_seq=4, spec_seq=1, prompt_seq=2, repeatable=True)
    state = apply_events(state, observation(id_of(4)))
    assert only_step(state) == Act(action_seq=5, spec_seq=1, prompt_seq=2, repeatable=False)


def test_a_delegation_gets_the_remaining_budget() -> None:
    assert only_step(apply_events(with_spec(), *calls("delegate"))) == Delegate(
        action_seq=4, spec_seq=1
    )
    limits = SPEC.limits.model_copy(update={"max_budget": 2.0})
    state = apply_events(with_spec(limits=limits), *calls("delegate"), usage=Usage(cost=0.5))
    assert only_step(state) == Delegate(action_seq=4, spec_seq=1, budget=1.5)
    broke = apply_events(with_spec(limits=limits), *calls("delegate"), usage=Usage(cost=2.5))
    assert only_step(broke) == Delegate(action_seq=4, spec_seq=1, budget=0.0)


def test_an_action_gets_the_skills_recalled_before_it() -> None:
    step = only_step(
        apply_events(opened_state(), user(), recall_event("Be brief.", "brevity"), *calls("look"))
    )
    assert isinstance(step, Act)
    assert step.shown_skills == ("brevity",)


def test_the_prompt_is_prepared_before_the_model_is_asked() -> None:
    state = apply_events(State(), opened_event(), spec_event(), user())
    assert only_step(state) == Prepare(spec_seq=1)
    assert only_step(apply_events(state, prompt())) == Think(spec_seq=1, prompt_seq=3)


def test_the_model_is_asked_by_the_spec_in_force() -> None:
    assert only_step(apply_events(opened_state(), spec_event(), user())) == Think(
        spec_seq=3, prompt_seq=2
    )


def test_the_model_is_asked_again_once_every_call_has_a_result() -> None:
    state = apply_events(opened_state(), user(), *calls("look"), observation(id_of(4)))
    assert only_step(state) == Think(spec_seq=1, prompt_seq=2, response_index=1)


def test_forgotten_slots_are_left_out_of_the_prompt() -> None:
    state = apply_events(opened_state(), user(), agent(), condensation(3, 4), user())
    assert only_step(state) == Think(
        spec_seq=1, prompt_seq=2, forgotten_seqs=((3, 4),), response_index=1
    )


# Going in circles.


def test_a_stuck_agent_is_stopped_until_the_next_message() -> None:
    state = with_spec(stuck=StuckThresholds(action_observation=2))
    for seq in (4, 6):
        state = apply_events(state, action("look"), observation(id_of(seq)))
    finding = StuckFinding(pattern="action_observation", first_seq=4, last_seq=7, count=2)
    assert only_step(state) == Record(items=(finding,))
    stuck = record_next(state)
    assert (stuck.status, stuck.reason) == ("stuck", "action_observation: events 4 to 7")
    assert decide(stuck, ()) == ()
    for item in (UserMessage(text="Try the other door."), ResumeRequest()):
        assert isinstance(only_step(apply_requests(stuck, item)), Think)


def test_a_failing_agent_is_warned_once_before_it_is_stuck() -> None:
    state = with_spec(stuck=StuckThresholds(action_error=2))
    for seq in (4, 6):
        state = apply_events(state, action("look"), error(id_of(seq), words="no such file"))
    step = only_step(state)
    assert isinstance(step, Record)
    [nudge] = step.items
    assert isinstance(nudge, AgentWarning)
    assert nudge.topic == "stuck"
    state = record_next(state)
    assert isinstance(only_step(state), Think)
    state = apply_events(state, action("look"), error(id_of(9), words="no such file"))
    assert record_next(state).status == "stuck"


# Condensing.

SHORT = SummaryCondenser(max_size=3, max_tokens=1_000)


def test_a_view_that_is_too_long_is_condensed() -> None:
    state = apply_events(with_spec(condenser=SHORT), agent(), user())
    assert only_step(state) == Condense(spec_seq=1, forgotten_seqs=(), reason="size")
    less = apply_events(state, condensation(3, 4))
    assert only_step(less) == Think(
        spec_seq=1, prompt_seq=2, forgotten_seqs=((3, 4),), response_index=1
    )


def test_a_view_of_too_many_tokens_is_condensed() -> None:
    state = apply_events(
        opened_state(SPEC.model_copy(update={"condenser": SHORT})), user("x" * 8_000)
    )
    assert isinstance(only_step(state), Condense)


def test_condensing_is_tried_again_once_the_view_has_grown() -> None:
    state = apply_events(with_spec(condenser=SHORT), agent(), user())
    notes = postpone_condensing(RunNotes(), state)
    while state.view_events < 14:
        assert isinstance(only_step(state, notes), Think)
        state = apply_events(state, user("More."))
    assert isinstance(only_step(state, notes), Condense)


def test_a_prompt_that_did_not_fit_is_condensed_and_each_time_harder() -> None:
    state = with_spec()
    for tries in (1, 2):
        state = apply_events(state, overflow())
        assert only_step(state) == Condense(
            spec_seq=1, forgotten_seqs=state.forgotten_seqs, reason="overflow", overflows=tries
        )
        state = apply_events(state, condensation(tries, tries))
        assert isinstance(only_step(state), Think)
    state = apply_events(state, action("look"), observation(id_of(state.next_seq)), overflow())
    step = only_step(state)
    assert isinstance(step, Condense)
    assert step.overflows == 1


@pytest.mark.parametrize("then", [[], [agent()], [PAUSE], [error_event()]])
def test_a_user_may_request_condensing_at_any_time(then: list[AnyEvent]) -> None:
    state = apply_events(with_spec(), *then, USER_ASKS)
    assert only_step(state) == Condense(spec_seq=1, forgotten_seqs=(), reason="user")
    for answer in (
        condensation(3, 3),
        state_update("not_condensed", "There is nothing to condense yet."),
    ):
        assert not any(
            isinstance(step, Condense) for step in decide(apply_events(state, answer), ())
        )


def test_condensing_by_a_user_waits_for_the_actions() -> None:
    state = apply_events(with_spec(), *calls("look"), USER_ASKS)
    assert isinstance(only_step(state), Act)
    assert isinstance(only_step(apply_events(state, observation(id_of(4)))), Condense)


def test_an_interrupt_cancels_a_requested_condensation() -> None:
    state = apply_events(with_spec(), USER_ASKS, InterruptEvent(timestamp=TIMESTAMP))
    assert decide(state, ()) == ()


def test_a_closed_conversation_is_not_condensed() -> None:
    assert decide(apply_events(with_spec(), USER_ASKS, status_event("closed")), ()) == ()


# A title.

ENTITLED = {"title_model": ModelSpec(name="small")}


def test_a_conversation_that_rests_is_given_a_title_once() -> None:
    state = with_spec(**ENTITLED)
    assert isinstance(only_step(state), Think)
    state = apply_events(state, agent())
    assert only_step(state) == GenerateTitle(spec_seq=1, message_seq=3)
    assert decide(apply_events(state, state_update("title", "Doors")), ()) == ()
    assert decide(state, (), notes=RunNotes(title_failed=True)) == ()
    assert decide(apply_events(state, status_event("closed")), ()) == ()


def test_a_title_needs_a_message_and_a_title_model() -> None:
    assert decide(opened_state(SPEC.model_copy(update=ENTITLED)), ()) == ()
    assert decide(apply_events(with_spec(), agent()), ()) == ()


# How much is recorded at a time.

items = st.one_of(
    st.builds(UserMessage, text=st.sampled_from(["hi", "失" * 900, "x" * 30_000, "🙈" * 20_000])),
    st.sampled_from([PauseRequest(), ResumeRequest(), CloseRequest(), RefusedInput(detail="no")]),
)


@given(st.lists(items, min_size=1, max_size=12))
@settings(max_examples=30)
def test_a_record_step_is_bounded_and_takes_at_least_one_item(inbox: list[InboxItem]) -> None:
    waiting: list[InboxItem] = list(inbox)
    recorded: list[InboxItem] = []
    while waiting:
        [step] = decide(opened_state(), waiting)
        assert isinstance(step, Record)
        assert step.items == select_items(waiting) == tuple(waiting[: step.from_inbox])
        assert step.from_inbox == 1 or sum(map(json_size, step.items)) <= MAX_RECORD_BYTES
        recorded += step.items
        del waiting[: step.from_inbox]
    assert recorded == inbox


def test_the_largest_message_fits_into_a_record_step() -> None:
    largest = UserMessage(text="x" * (MAX_MESSAGE_BYTES - json_size(UserMessage(text=""))))
    assert find_message_error(largest) is None
    assert select_items([largest, PauseRequest()]) == (largest,)
    assert json_size(largest) <= MAX_RECORD_BYTES


def test_an_item_that_is_too_large_is_recorded_alone() -> None:
    oversized = UserMessage(text="x" * 200_000)
    assert select_items([oversized, PauseRequest()]) == (oversized,)
    assert select_items([PauseRequest(), oversized]) == (PauseRequest(),)


def test_the_summaries_of_a_record_step_fit_into_a_payload() -> None:
    crowd = [
        UserMessage(text="x", message_id=f"{nth:0128d}") for nth in range(2 * MAX_RECORD_ITEMS)
    ]
    assert select_items(crowd) == tuple(crowd[:MAX_RECORD_ITEMS])
    messages = [user(item.text, item.message_id) for item in crowd[:MAX_RECORD_ITEMS]]
    facts = summaries_of(*messages, start=900_000)
    assert len(to_json(facts, exclude_none=True)) < 128 * 1024
