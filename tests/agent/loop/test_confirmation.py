"""Only a person's approval lets an action run, where a policy asks for confirmation."""

import pytest

from perdure.agent.loop.decide import decide, refuse_pending
from perdure.agent.loop.inbox import (
    Approval,
    CloseRequest,
    CondenseRequest,
    ConfirmationRequest,
    InboxItem,
    InterruptRequest,
    PauseRequest,
    Rejection,
    ResumeRequest,
    SpecChange,
    UserMessage,
)
from perdure.agent.loop.state import State, actions_to_confirm
from perdure.agent.loop.steps import (
    Act,
    Condense,
    GenerateTitle,
    Record,
    Refusal,
    ResolveLostCall,
    Think,
)
from perdure.agent.policies import RISK_LEVELS, Confirmation
from perdure.agent.spec import Agent, ModelSpec
from perdure.events.risk import Risk
from tests.agent.recording import apply_requests, record_next
from tests.builders import (
    SPEC,
    action,
    apply_events,
    error_event,
    id_of,
    lose_call,
    observation,
    opened_event,
    opened_state,
    risk_analysis,
    user,
)

ALWAYS = Confirmation(policy="always")
SUPERSEDED = "Superseded by a new message of the user."
STOPPED = "The user stopped the agent before this was done."


def careful(confirmation: Confirmation = ALWAYS) -> Agent:
    return SPEC.model_copy(update={"confirmation": confirmation})


def with_calls(*names: str, confirmation: Confirmation = ALWAYS) -> State:
    """Open a conversation whose agent made these calls, the first in slot 4."""
    batch = [action(name, f"call_{nth}") for nth, name in enumerate(names)]
    return apply_events(opened_state(careful(confirmation)), user(), *batch)


def awaiting_confirmation(*names: str, confirmation: Confirmation = ALWAYS) -> State:
    """Open a conversation that waits for the confirmation of these calls."""
    state = record_next(with_calls(*names, confirmation=confirmation))
    assert state.status == "waiting_for_confirmation"
    return state


def acting_seqs(state: State) -> list[int]:
    """Return the slots of the actions that run next."""
    return [step.action_seq for step in decide(state, ()) if isinstance(step, Act)]


def seqs_to_confirm(state: State) -> list[int]:
    return [item.seq for item in actions_to_confirm(state)]


def refusal_of(state: State, *items: InboxItem) -> Refusal | None:
    [step] = decide(state, items)
    assert isinstance(step, Record)
    return step.refusal


# Which actions wait.

RISKY = {"LOW": ("LOW", "MEDIUM", "HIGH"), "MEDIUM": ("MEDIUM", "HIGH"), "HIGH": ("HIGH",)}


@pytest.mark.parametrize("risk", RISK_LEVELS)
@pytest.mark.parametrize("confirm_unknown", [True, False])
@pytest.mark.parametrize("threshold", ["LOW", "MEDIUM", "HIGH"])
def test_a_policy_asks_from_a_risk_on(threshold: str, confirm_unknown: bool, risk: Risk) -> None:
    fields = {"policy": "risky", "threshold": threshold, "confirm_unknown": confirm_unknown}
    confirmation = Confirmation.model_validate(fields)
    state = apply_events(opened_state(careful(confirmation)), user(), action("write", risk=risk))
    waits = confirm_unknown if risk == "UNKNOWN" else risk in RISKY[threshold]
    question = Record(items=(ConfirmationRequest(actions=(4,)),))
    assert (decide(state, ()) == (question,)) is waits
    assert (acting_seqs(state) == [4]) is not waits


@pytest.mark.parametrize("risk", RISK_LEVELS)
def test_a_policy_may_ask_always_or_never(risk: Risk) -> None:
    for policy, done in ((ALWAYS, []), (Confirmation(), [4])):
        state = apply_events(opened_state(careful(policy)), user(), action("write", risk=risk))
        assert acting_seqs(state) == done


def test_the_risk_that_an_analyzer_found_is_what_counts() -> None:
    risky = careful(Confirmation(policy="risky"))
    state = apply_events(opened_state(risky), user(), action("look"), action("write", risk="LOW"))
    assert seqs_to_confirm(state) == [4]
    state = apply_events(
        state, risk_analysis({id_of(4): "LOW", id_of(5): "HIGH", "another": "HIGH"})
    )
    assert seqs_to_confirm(state) == [5]


def test_think_and_finish_need_no_confirmation() -> None:
    assert acting_seqs(with_calls("think")) == [4]
    assert acting_seqs(with_calls("finish", "think")) == [4]
    assert seqs_to_confirm(with_calls("think", "write", "finish")) == [5]


def test_a_batch_waits_as_a_whole() -> None:
    risky = Confirmation(policy="risky")
    batch = [action("look", "call_0", risk="LOW"), action("write", "call_1", risk="HIGH")]
    state = record_next(apply_events(opened_state(careful(risky)), user(), *batch))
    assert (state.status, seqs_to_confirm(state)) == ("waiting_for_confirmation", [5])
    assert decide(state, ()) == ()
    assert acting_seqs(apply_requests(state, Approval(actions=(5,)))) == [4]


# What a person says.


def test_an_action_that_was_allowed_happens() -> None:
    state = apply_requests(awaiting_confirmation("look", "write"), Approval(actions=(4, 5)))
    assert (state.status, seqs_to_confirm(state), acting_seqs(state)) == ("running", [], [4])
    assert acting_seqs(apply_events(state, observation(id_of(4)))) == [5]


def test_only_the_confirmed_actions_are_approved() -> None:
    state = apply_requests(awaiting_confirmation("look", "write"), Approval(actions=(4,)))
    assert (state.status, seqs_to_confirm(state)) == ("waiting_for_confirmation", [5])
    assert decide(state, ()) == ()
    assert acting_seqs(apply_requests(state, Approval(actions=(5,)))) == [4]


def test_an_approval_does_not_cover_the_next_response() -> None:
    state = apply_requests(awaiting_confirmation("write"), Approval(actions=(4, 6, 7, 8, 9)))
    state = apply_events(
        state, observation(id_of(4), "write"), action("write", response="response-2")
    )
    assert seqs_to_confirm(state) == [state.next_seq - 1]


def test_a_rejection_answers_the_action_and_the_agent_goes_on() -> None:
    state = apply_requests(
        awaiting_confirmation("write"), Rejection(actions=(4,), reason="Not on a Friday.")
    )
    assert (state.status, state.pending) == ("running", ())
    assert isinstance(decide(state, ())[0], Think)


def test_some_may_be_allowed_and_others_rejected() -> None:
    state = apply_requests(
        awaiting_confirmation("look", "write"), Rejection(actions=(5,), reason="No.")
    )
    assert (state.status, seqs_to_confirm(state)) == ("waiting_for_confirmation", [4])
    assert acting_seqs(apply_requests(state, Approval(actions=(4,)))) == [4]


def test_actions_can_be_confirmed_during_a_pause() -> None:
    paused = apply_requests(awaiting_confirmation("write"), PauseRequest(), Approval(actions=(4,)))
    assert (paused.status, decide(paused, ())) == ("paused", ())
    assert acting_seqs(apply_requests(paused, ResumeRequest())) == [4]


# What is no consent.


@pytest.mark.parametrize(
    "items",
    [
        [ResumeRequest()],
        [PauseRequest(), ResumeRequest()],
        [CondenseRequest()],
        [Approval(actions=(3, 5, 6))],
        [Approval(actions=())],
    ],
)
def test_only_an_approval_is_consent(items: list[InboxItem]) -> None:
    state = apply_requests(awaiting_confirmation("write"), *items)
    assert seqs_to_confirm(state) == [4]
    assert acting_seqs(state) == []
    if state.status == "running":
        state = record_next(state)
    assert state.status == "waiting_for_confirmation"


def test_a_failure_is_no_consent() -> None:
    state = apply_requests(
        apply_events(awaiting_confirmation("write"), error_event()), ResumeRequest()
    )
    assert record_next(state).status == "waiting_for_confirmation"


@pytest.mark.parametrize(
    "state", [awaiting_confirmation("look", "write"), with_calls("look", "write")]
)
def test_a_crash_is_no_consent_and_nothing_that_waits_is_lost_by_it(state: State) -> None:
    state = apply_events(state, opened_event("run-2"), opened_event("run-3"))
    assert [item.outcome_unknown for item in state.pending] == [None, None]
    assert seqs_to_confirm(state) == [4, 5]
    assert acting_seqs(state) == []
    assert acting_seqs(apply_requests(state, Approval(actions=(4, 5)))) == [4]


def test_a_crash_during_a_pause_loses_nothing_either() -> None:
    paused = apply_requests(awaiting_confirmation("write"), Approval(actions=(4,)), PauseRequest())
    state = apply_requests(apply_events(paused, opened_event("run-2")), ResumeRequest())
    assert acting_seqs(state) == [4]


def test_a_call_that_may_have_run_in_a_lost_workflow_does_not_run_again() -> None:
    state = apply_requests(awaiting_confirmation("write"), Approval(actions=(4,)))
    [step] = decide(apply_events(state, opened_event("run-2")), ())
    assert isinstance(step, ResolveLostCall)


# What a person does instead.


def test_a_new_message_rejects_actions_that_wait_for_confirmation() -> None:
    no = UserMessage(text="No.")
    for state in (awaiting_confirmation("look", "write"), with_calls("look", "write")):
        assert refusal_of(state, no) == Refusal(action_seqs=(4, 5), reason=SUPERSEDED)
        then = apply_requests(state, no)
        assert (then.status, then.pending, then.turn) == ("running", (), 1)
        assert isinstance(decide(then, ())[0], Think)


def test_a_new_message_rejects_no_action_that_needs_no_confirmation() -> None:
    assert (
        refusal_of(with_calls("write", confirmation=Confirmation()), UserMessage(text="Also:"))
        is None
    )
    state = apply_requests(awaiting_confirmation("think", "write"), Approval(actions=(5,)))
    assert refusal_of(state, UserMessage(text="Also:")) is None


def test_actions_approved_before_the_message_stay_approved() -> None:
    state = awaiting_confirmation("look", "write")
    items = (Approval(actions=(4,)), UserMessage(text="Not the other."))
    assert refusal_of(state, *items) == Refusal(action_seqs=(5,), reason=SUPERSEDED)
    assert acting_seqs(apply_requests(state, *items)) == [4]


def test_an_approval_after_the_message_comes_too_late() -> None:
    state = awaiting_confirmation("write")
    items = (UserMessage(text="No."), Approval(actions=(4,)))
    assert refusal_of(state, *items) == Refusal(action_seqs=(4,), reason=SUPERSEDED)
    assert apply_requests(state, *items).pending == ()


def test_a_rejection_keeps_its_reason() -> None:
    items = (UserMessage(text="No."), Rejection(actions=(4,), reason="Not on a Friday."))
    assert refusal_of(awaiting_confirmation("write"), *items) is None
    assert apply_requests(awaiting_confirmation("write"), *items).pending == ()


@pytest.mark.parametrize(
    ("item", "then"), [(InterruptRequest(), "idle"), (CloseRequest(), "closed")]
)
def test_an_interrupt_or_close_refuses_all_pending_actions(item: InboxItem, then: str) -> None:
    allowed = apply_requests(awaiting_confirmation("look", "write"), Approval(actions=(4, 5)))
    free = with_calls("look", "write", confirmation=Confirmation())
    for state in (awaiting_confirmation("look", "write"), allowed, free):
        for items in ([item], [Approval(actions=(4,)), item], [UserMessage(text="Stop."), item]):
            assert refusal_of(state, *items) == Refusal(action_seqs=(4, 5), reason=STOPPED)
            stopped = apply_requests(state, *items)
            assert (stopped.status, stopped.pending, decide(stopped, ())) == (then, (), ())


def test_a_lost_call_is_resolved_and_neither_confirmed_nor_refused() -> None:
    assert seqs_to_confirm(lose_call(with_calls("look", "write"), 4, "gone")) == [5]
    state = lose_call(with_calls("look", "write", confirmation=Confirmation()), 4, "gone")
    assert refuse_pending(state, [InterruptRequest()]) == Refusal(action_seqs=(5,), reason=STOPPED)
    assert (
        refuse_pending(
            lose_call(awaiting_confirmation("write"), 4, "gone"),
            [UserMessage(text="No.")],
        )
        is None
    )


def test_a_waiting_conversation_can_be_condensed_and_titled() -> None:
    [step] = decide(apply_requests(awaiting_confirmation("write"), CondenseRequest()), ())
    assert isinstance(step, Condense)
    spec = careful().model_copy(update={"title_model": ModelSpec(name="small")})
    state = record_next(apply_events(opened_state(spec), user(), action("write")))
    assert isinstance(decide(state, ())[0], GenerateTitle)


# Another policy, while actions wait.


def policy_change(policy: str) -> SpecChange:
    return SpecChange(changes={"confirmation": {"policy": policy}})


def test_a_laxer_policy_is_no_consent_to_actions_already_asked_about() -> None:
    state = apply_requests(awaiting_confirmation("write"), policy_change("never"))
    assert (state.status, seqs_to_confirm(state)) == ("waiting_for_confirmation", [4])
    paused = apply_requests(
        awaiting_confirmation("write"), PauseRequest(), policy_change("never"), ResumeRequest()
    )
    assert (seqs_to_confirm(paused), acting_seqs(paused)) == ([4], [])
    assert acting_seqs(apply_requests(state, Approval(actions=(4,)))) == [4]


def test_a_policy_that_asks_for_less_does_so_from_the_next_action_on() -> None:
    batch = [action("look", "call_0", risk="LOW"), action("write", "call_1", risk="HIGH")]
    state = apply_requests(
        record_next(apply_events(opened_state(careful()), user(), *batch)), policy_change("risky")
    )
    assert (state.status, seqs_to_confirm(state)) == ("waiting_for_confirmation", [4, 5])
    later = action("write", "call_2", "another", risk="LOW")
    state = apply_events(apply_requests(state, Rejection(actions=(4, 5), reason="no")), later)
    assert (seqs_to_confirm(state), acting_seqs(state)) == ([], [later_seq(state)])


def later_seq(state: State) -> int:
    return state.pending[-1].seq


def test_a_policy_that_asks_for_more_asks_before_the_next_action() -> None:
    state = with_calls("look", "write", confirmation=Confirmation())
    state = record_next(
        apply_requests(apply_events(state, observation(id_of(4))), policy_change("always"))
    )
    assert (seqs_to_confirm(state), acting_seqs(state)) == ([5], [])
