"""What a conversation answers when it is asked where it stands."""

from pydantic_core import to_json

from agent.inbox import Said
from agent.spec import Confirmation
from agent.start import PendingCall, Snapshot, Start, snapshot
from agent.state import State, untitled
from events.usage import Usage
from tests.builders import (
    CONVERSATION,
    SPEC,
    action,
    after,
    agent,
    failed,
    opening,
    status,
    updated,
    user,
)

CAREFUL = SPEC.model_copy(update={"confirmation": Confirmation(policy="risky"), "tags": ("blue",)})


def shown(state: State, waiting: int = 0) -> Snapshot:
    return snapshot(CONVERSATION, state, waiting)


def test_before_it_is_opened_there_is_nothing_to_tell() -> None:
    assert shown(State(), 2) == Snapshot(conversation_id=CONVERSATION, status="idle", waiting=2)


def test_it_tells_where_it_stands() -> None:
    bill = Usage(cost=0.5, prompt_tokens=7, model="m")
    state = after(after(opening(CAREFUL), user()), agent(), usage=bill)
    found = shown(after(state, updated("title", "Doors")))
    assert (found.status, found.reason, found.title) == ("finished", None, "Doors")
    assert (found.turn, found.iterations, found.next_seq) == (1, 1, 6)
    assert (found.shown, found.tokens) == (3, state.tokens)
    assert found.spent.cost == 0.5
    assert found.spent_on == {"chat m": bill.model_copy(update={"model": ""})}
    assert (found.model, found.tags) == ("scripted:story.json", ("blue",))


def test_it_tells_why() -> None:
    found = shown(after(opening(), user(), failed("auth", "Set a key.")))
    assert (found.status, found.reason) == ("error", "auth: Set a key.")


def test_no_title_is_none() -> None:
    assert shown(untitled(opening())).title is None


def test_it_tells_which_actions_wait_for_a_person() -> None:
    batch = [action("look", "call_0", risk="LOW"), action("write", "call_1", risk="HIGH")]
    state = after(opening(CAREFUL), user(), *batch, status("waiting_for_confirmation"))
    found = shown(state)
    assert found.status == "waiting_for_confirmation"
    assert found.pending == (
        PendingCall(seq=4, tool_name="look", tool_call_id="call_0", risk="LOW", asks=False),
        PendingCall(seq=5, tool_name="write", tool_call_id="call_1", risk="HIGH", asks=True),
    )
    allowed = shown(after(state, updated("confirmed", [5])))
    assert [one.asks for one in allowed.pending] == [False, False]


def test_what_is_handed_on_comes_back() -> None:
    state = after(opening(CAREFUL), user(message_id="m"), action("write", touches=("file:a",)))
    start = Start(conversation_id="c", user_id="u", state=state, inbox=(Said(text="hi"),))
    assert Start.model_validate_json(to_json(start, exclude_none=True)) == start
    found = shown(state, 1)
    assert Snapshot.model_validate_json(to_json(found, exclude_none=True)) == found
