"""Nothing but a person's word for an action lets it happen, where a policy asks for that word."""

import pytest

from agent.decide import decide, refusal
from agent.inbox import (
    CloseAsked,
    CondenseAsked,
    Configured,
    ConfirmationAsked,
    Confirmed,
    InterruptAsked,
    Item,
    PauseAsked,
    Rejected,
    ResumeAsked,
    Said,
)
from agent.spec import RISKS, Confirmation, ModelSpec, Spec
from agent.state import State, asking, lost
from agent.steps import Act, Condense, Entitle, Record, Refusal, Settle, Think
from events.risk import Risk
from tests.agent.recording import asked, noted
from tests.builders import (
    SPEC,
    action,
    after,
    assessed,
    failed,
    id_of,
    observation,
    opened,
    opening,
    user,
)

ALWAYS = Confirmation(policy="always")
SUPERSEDED = "Superseded by a new message of the user."
STOPPED = "The user stopped the agent before this was done."


def careful(confirmation: Confirmation = ALWAYS) -> Spec:
    return SPEC.model_copy(update={"confirmation": confirmation})


def wanting(*names: str, confirmation: Confirmation = ALWAYS) -> State:
    """The agent wants to do all of this, the first in slot 4; nobody has been asked yet."""
    batch = [action(name, f"call_{nth}") for nth, name in enumerate(names)]
    return after(opening(careful(confirmation)), user(), *batch)


def waiting(*names: str, confirmation: Confirmation = ALWAYS) -> State:
    """The same, once a person has been asked."""
    state = noted(wanting(*names, confirmation=confirmation))
    assert state.status == "waiting_for_confirmation"
    return state


def acting(state: State) -> list[int]:
    """The slots of the actions that are done next."""
    return [step.action for step in decide(state, ()) if isinstance(step, Act)]


def asks(state: State) -> list[int]:
    return [one.seq for one in asking(state)]


def refused(state: State, *items: Item) -> Refusal | None:
    [step] = decide(state, items)
    assert isinstance(step, Record)
    return step.refusal


# Which actions wait.

RISKY = {"LOW": ("LOW", "MEDIUM", "HIGH"), "MEDIUM": ("MEDIUM", "HIGH"), "HIGH": ("HIGH",)}


@pytest.mark.parametrize("risk", RISKS)
@pytest.mark.parametrize("confirm_unknown", [True, False])
@pytest.mark.parametrize("threshold", ["LOW", "MEDIUM", "HIGH"])
def test_a_policy_asks_from_a_risk_on(threshold: str, confirm_unknown: bool, risk: Risk) -> None:
    fields = {"policy": "risky", "threshold": threshold, "confirm_unknown": confirm_unknown}
    confirmation = Confirmation.model_validate(fields)
    state = after(opening(careful(confirmation)), user(), action("write", risk=risk))
    waits = confirm_unknown if risk == "UNKNOWN" else risk in RISKY[threshold]
    question = Record(items=(ConfirmationAsked(actions=(4,)),))
    assert (decide(state, ()) == (question,)) is waits
    assert (acting(state) == [4]) is not waits


@pytest.mark.parametrize("risk", RISKS)
def test_a_policy_may_ask_always_or_never(risk: Risk) -> None:
    for policy, done in ((ALWAYS, []), (Confirmation(), [4])):
        state = after(opening(careful(policy)), user(), action("write", risk=risk))
        assert acting(state) == done


def test_the_risk_that_an_analyzer_found_is_what_counts() -> None:
    risky = careful(Confirmation(policy="risky"))
    state = after(opening(risky), user(), action("look"), action("write", risk="LOW"))
    assert asks(state) == [4]
    state = after(state, assessed({id_of(4): "LOW", id_of(5): "HIGH", "another": "HIGH"}))
    assert asks(state) == [5]


def test_to_think_and_to_finish_is_never_asked_for() -> None:
    assert acting(wanting("think")) == [4]
    assert acting(wanting("finish", "think")) == [4]
    assert asks(wanting("think", "write", "finish")) == [5]


def test_a_batch_waits_as_a_whole() -> None:
    risky = Confirmation(policy="risky")
    batch = [action("look", "call_0", risk="LOW"), action("write", "call_1", risk="HIGH")]
    state = noted(after(opening(careful(risky)), user(), *batch))
    assert (state.status, asks(state)) == ("waiting_for_confirmation", [5])
    assert decide(state, ()) == ()
    assert acting(asked(state, Confirmed(actions=(5,)))) == [4]


# What a person says.


def test_an_action_that_was_allowed_happens() -> None:
    state = asked(waiting("look", "write"), Confirmed(actions=(4, 5)))
    assert (state.status, asks(state), acting(state)) == ("running", [], [4])
    assert acting(after(state, observation(id_of(4)))) == [5]


def test_only_what_was_named_is_allowed() -> None:
    state = asked(waiting("look", "write"), Confirmed(actions=(4,)))
    assert (state.status, asks(state)) == ("waiting_for_confirmation", [5])
    assert decide(state, ()) == ()
    assert acting(asked(state, Confirmed(actions=(5,)))) == [4]


def test_what_was_allowed_before_is_no_leave_for_the_next_answer() -> None:
    state = asked(waiting("write"), Confirmed(actions=(4, 6, 7, 8, 9)))
    state = after(state, observation(id_of(4), "write"), action("write", response="response-2"))
    assert asks(state) == [state.next_seq - 1]


def test_a_rejection_answers_the_action_and_the_agent_goes_on() -> None:
    state = asked(waiting("write"), Rejected(actions=(4,), reason="Not on a Friday."))
    assert (state.status, state.pending) == ("running", ())
    assert isinstance(decide(state, ())[0], Think)


def test_some_may_be_allowed_and_others_rejected() -> None:
    state = asked(waiting("look", "write"), Rejected(actions=(5,), reason="No."))
    assert (state.status, asks(state)) == ("waiting_for_confirmation", [4])
    assert acting(asked(state, Confirmed(actions=(4,)))) == [4]


def test_the_last_word_on_it_may_be_said_during_a_pause() -> None:
    paused = asked(waiting("write"), PauseAsked(), Confirmed(actions=(4,)))
    assert (paused.status, decide(paused, ())) == ("paused", ())
    assert acting(asked(paused, ResumeAsked())) == [4]


# What is no consent.


@pytest.mark.parametrize(
    "items",
    [
        [ResumeAsked()],
        [PauseAsked(), ResumeAsked()],
        [CondenseAsked()],
        [Confirmed(actions=(3, 5, 6))],
        [Confirmed(actions=())],
    ],
)
def test_nothing_else_is_consent(items: list[Item]) -> None:
    state = asked(waiting("write"), *items)
    assert asks(state) == [4]
    assert acting(state) == []
    if state.status == "running":
        state = noted(state)
    assert state.status == "waiting_for_confirmation"


def test_a_failure_is_no_consent() -> None:
    state = asked(after(waiting("write"), failed()), ResumeAsked())
    assert noted(state).status == "waiting_for_confirmation"


@pytest.mark.parametrize("state", [waiting("look", "write"), wanting("look", "write")])
def test_a_crash_is_no_consent_and_nothing_that_waits_is_lost_by_it(state: State) -> None:
    state = after(state, opened("run-2"), opened("run-3"))
    assert [one.lost for one in state.pending] == [None, None]
    assert asks(state) == [4, 5]
    assert acting(state) == []
    assert acting(asked(state, Confirmed(actions=(4, 5)))) == [4]


def test_a_crash_during_a_pause_loses_nothing_either() -> None:
    paused = asked(waiting("write"), Confirmed(actions=(4,)), PauseAsked())
    state = asked(after(paused, opened("run-2")), ResumeAsked())
    assert acting(state) == [4]


def test_what_may_have_run_when_the_workflow_was_lost_is_not_run_again() -> None:
    state = asked(waiting("write"), Confirmed(actions=(4,)))
    [step] = decide(after(state, opened("run-2")), ())
    assert isinstance(step, Settle)


# What a person does instead.


def test_a_new_message_rejects_what_waits() -> None:
    no = Said(text="No.")
    for state in (waiting("look", "write"), wanting("look", "write")):
        assert refused(state, no) == Refusal(actions=(4, 5), reason=SUPERSEDED)
        then = asked(state, no)
        assert (then.status, then.pending, then.turn) == ("running", (), 1)
        assert isinstance(decide(then, ())[0], Think)


def test_a_new_message_rejects_nothing_that_nobody_has_to_allow() -> None:
    assert refused(wanting("write", confirmation=Confirmation()), Said(text="Also:")) is None
    state = asked(waiting("think", "write"), Confirmed(actions=(5,)))
    assert refused(state, Said(text="Also:")) is None


def test_what_was_allowed_before_the_message_is_allowed() -> None:
    state = waiting("look", "write")
    items = (Confirmed(actions=(4,)), Said(text="Not the other."))
    assert refused(state, *items) == Refusal(actions=(5,), reason=SUPERSEDED)
    assert acting(asked(state, *items)) == [4]


def test_what_is_allowed_after_the_message_is_not_there_any_more() -> None:
    state = waiting("write")
    items = (Said(text="No."), Confirmed(actions=(4,)))
    assert refused(state, *items) == Refusal(actions=(4,), reason=SUPERSEDED)
    assert asked(state, *items).pending == ()


def test_what_is_rejected_with_a_reason_keeps_its_reason() -> None:
    items = (Said(text="No."), Rejected(actions=(4,), reason="Not on a Friday."))
    assert refused(waiting("write"), *items) is None
    assert asked(waiting("write"), *items).pending == ()


@pytest.mark.parametrize(("item", "then"), [(InterruptAsked(), "idle"), (CloseAsked(), "closed")])
def test_who_stops_the_agent_refuses_all_that_has_not_been_done(item: Item, then: str) -> None:
    allowed = asked(waiting("look", "write"), Confirmed(actions=(4, 5)))
    free = wanting("look", "write", confirmation=Confirmation())
    for state in (waiting("look", "write"), allowed, free):
        for items in ([item], [Confirmed(actions=(4,)), item], [Said(text="Stop."), item]):
            assert refused(state, *items) == Refusal(actions=(4, 5), reason=STOPPED)
            stopped = asked(state, *items)
            assert (stopped.status, stopped.pending, decide(stopped, ())) == (then, (), ())


def test_a_lost_call_is_settled_and_neither_asked_about_nor_refused() -> None:
    assert asks(lost(wanting("look", "write"), 4, "gone")) == [5]
    state = lost(wanting("look", "write", confirmation=Confirmation()), 4, "gone")
    assert refusal(state, [InterruptAsked()]) == Refusal(actions=(5,), reason=STOPPED)
    assert refusal(lost(waiting("write"), 4, "gone"), [Said(text="No.")]) is None


def test_who_waits_can_be_relieved_and_given_a_title_meanwhile() -> None:
    [step] = decide(asked(waiting("write"), CondenseAsked()), ())
    assert isinstance(step, Condense)
    spec = careful().model_copy(update={"title_model": ModelSpec(name="small")})
    state = noted(after(opening(spec), user(), action("write")))
    assert isinstance(decide(state, ())[0], Entitle)


# Another policy, while actions wait.


def by_policy(policy: str) -> Configured:
    return Configured(changes={"confirmation": {"policy": policy}})


def test_a_policy_that_no_longer_asks_is_no_consent_to_what_was_asked() -> None:
    state = asked(waiting("write"), by_policy("never"))
    assert (state.status, asks(state)) == ("waiting_for_confirmation", [4])
    paused = asked(waiting("write"), PauseAsked(), by_policy("never"), ResumeAsked())
    assert (asks(paused), acting(paused)) == ([4], [])
    assert acting(asked(state, Confirmed(actions=(4,)))) == [4]


def test_a_policy_that_asks_for_less_does_so_from_the_next_action_on() -> None:
    batch = [action("look", "call_0", risk="LOW"), action("write", "call_1", risk="HIGH")]
    state = asked(noted(after(opening(careful()), user(), *batch)), by_policy("risky"))
    assert (state.status, asks(state)) == ("waiting_for_confirmation", [4, 5])
    later = action("write", "call_2", "another", risk="LOW")
    state = after(asked(state, Rejected(actions=(4, 5), reason="no")), later)
    assert (asks(state), acting(state)) == ([], [later_seq(state)])


def later_seq(state: State) -> int:
    return state.pending[-1].seq


def test_a_policy_that_asks_for_more_asks_before_the_next_action() -> None:
    state = wanting("look", "write", confirmation=Confirmation())
    state = noted(asked(after(state, observation(id_of(4))), by_policy("always")))
    assert (asks(state), acting(state)) == ([5], [])
