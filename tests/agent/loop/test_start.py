"""The status of a conversation."""

from pydantic_core import to_json

from perdure.agent.loop.inbox import UserMessage
from perdure.agent.loop.start import ConversationStatus, PendingCall, Start, build_status
from perdure.agent.loop.state import State
from perdure.agent.policies import Confirmation
from perdure.events.usage import Usage
from tests.builders import (
    CONVERSATION,
    SPEC,
    action,
    agent,
    apply_events,
    error_event,
    opened_state,
    state_update,
    status_event,
    user,
)

CAREFUL = SPEC.model_copy(update={"confirmation": Confirmation(policy="risky"), "tags": ("blue",)})


def status_of(state: State, waiting: int = 0) -> ConversationStatus:
    return build_status(CONVERSATION, state, waiting)


def test_a_conversation_before_its_opening_has_an_empty_status() -> None:
    assert status_of(State(), 2) == ConversationStatus(
        conversation_id=CONVERSATION, status="idle", phase="idle", waiting=2
    )


def test_the_status_has_the_counts_of_the_state() -> None:
    bill = Usage(cost=0.5, prompt_tokens=7, model="m")
    state = apply_events(apply_events(opened_state(CAREFUL), user()), agent(), usage=bill)
    status = status_of(apply_events(state, state_update("title", "Doors")))
    assert (status.status, status.reason, status.title) == ("finished", None, "Doors")
    assert (status.turn, status.iterations, status.next_seq) == (1, 1, 6)
    assert (status.shown, status.tokens) == (3, state.view_tokens)
    assert status.spent.cost == 0.5
    assert status.spent_on == {"chat m": bill.model_copy(update={"model": ""})}
    assert (status.model, status.tags) == ("scripted:story.json", ("blue",))


def test_the_status_has_its_reason() -> None:
    status = status_of(apply_events(opened_state(), user(), error_event("auth", "Set a key.")))
    assert (status.status, status.reason) == ("error", "auth: Set a key.")


def test_no_title_is_none() -> None:
    assert status_of(opened_state()).title is None


def test_the_status_says_which_actions_wait_for_a_person() -> None:
    batch = [action("look", "call_0", risk="LOW"), action("write", "call_1", risk="HIGH")]
    state = apply_events(
        opened_state(CAREFUL), user(), *batch, status_event("waiting_for_confirmation")
    )
    status = status_of(state)
    assert status.status == "waiting_for_confirmation"
    assert status.pending == (
        PendingCall(seq=4, tool_name="look", tool_call_id="call_0", risk="LOW", asks=False),
        PendingCall(seq=5, tool_name="write", tool_call_id="call_1", risk="HIGH", asks=True),
    )
    allowed = status_of(apply_events(state, state_update("confirmed", [5])))
    assert [item.asks for item in allowed.pending] == [False, False]


def test_the_input_of_a_continued_workflow_survives_serialization() -> None:
    state = apply_events(
        opened_state(CAREFUL), user(message_id="m"), action("write", touches=("file:a",))
    )
    start = Start(conversation_id="c", user_id="u", state=state, inbox=(UserMessage(text="hi"),))
    assert Start.model_validate_json(to_json(start, exclude_none=True)) == start
    status = status_of(state, 1)
    assert ConversationStatus.model_validate_json(to_json(status, exclude_none=True)) == status
