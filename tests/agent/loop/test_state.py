"""Turns, actions and their results in the state of a conversation."""

from typing import Any

import pytest
from pydantic_core import to_json

from perdure.agent.extensions import McpServer
from perdure.agent.loop.forgotten_ids import MAX_MESSAGE_IDS
from perdure.agent.loop.start import Start
from perdure.agent.loop.state import (
    PendingAction,
    RunNotes,
    State,
    find_lost_call,
    has_unsaved_messages,
    note_lost_call,
    postpone_condensing,
    saves_messages_at_rest,
    update_notes,
)
from perdure.agent.loop.status import Status
from perdure.agent.policies import Limits
from perdure.agent.spec import ModelSpec
from perdure.events.control import PauseEvent, StuckEvent
from perdure.events.event import AnyEvent
from perdure.events.tools import ActionEvent
from perdure.events.usage import Usage
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
    rejection,
    spec_event,
    state_update,
    status_event,
    summaries_of,
    user,
)
from tests.logs import recall_event, system_message

LOST = "The conversation's workflow was lost while the call may have been running."


def actions(*names: str, response: str = "response-1") -> list[ActionEvent]:
    return [action(name, f"call_{nth}", response) for nth, name in enumerate(names)]


# Messages and turns.


def test_a_message_opens_a_turn() -> None:
    state = apply_events(opened_state(), user(message_id="m"))
    assert (state.status, state.turn, state.turn_open, state.last_user_seq) == (
        "running",
        1,
        True,
        3,
    )
    assert state.message_seqs == {"m": 3}


def test_a_message_in_the_middle_of_a_turn_does_not_open_another() -> None:
    state = apply_events(opened_state(), user(), action(), user())
    assert (state.turn, state.iterations, state.last_user_seq) == (1, 1, 5)


def test_words_end_the_turn() -> None:
    state = apply_events(opened_state(), user(), agent())
    assert (state.status, state.turn_open, state.turn, state.iterations) == (
        "finished",
        False,
        1,
        1,
    )


def test_a_new_turn_has_all_its_iterations() -> None:
    state = apply_events(opened_state(), user(), agent(), user())
    assert (state.turn, state.iterations, state.response_count) == (2, 0, 1)


def test_a_message_during_a_pause_waits_for_the_resumption() -> None:
    state = apply_events(opened_state(), PauseEvent(timestamp=TIMESTAMP), user())
    assert (state.status, state.turn_open) == ("paused", True)
    assert apply_events(state, status_event("resumed")).status == "running"


def test_a_resumed_conversation_without_an_open_turn_stays_at_rest() -> None:
    assert apply_events(opened_state(), status_event("resumed")).status == "idle"
    talked = apply_events(opened_state(), user(), agent())
    assert apply_events(talked, status_event("resumed")).status == "finished"
    assert (
        apply_events(talked, PauseEvent(timestamp=TIMESTAMP), status_event("resumed")).status
        == "idle"
    )


def test_a_failure_has_a_reason_that_the_next_message_takes_away() -> None:
    state = apply_events(opened_state(), user(), error_event("auth", "Set a key."))
    assert (state.status, state.reason, state.turn_open) == ("error", "auth: Set a key.", True)
    again = apply_events(state, user())
    assert (again.status, again.reason) == ("running", None)


def test_being_stuck_ends_with_the_next_message() -> None:
    stuck = StuckEvent(timestamp=TIMESTAMP, pattern="p", first_seq=0, last_seq=1, count=4)
    state = apply_events(opened_state(), user(), stuck)
    assert state.status == "stuck"
    assert (
        apply_events(state, user()).status
        == apply_events(state, status_event("resumed")).status
        == "running"
    )


def test_only_the_newest_message_ids_are_remembered() -> None:
    state, count = opened_state(), MAX_MESSAGE_IDS + 50
    for nth in range(count):
        state = apply_events(state, user("hi", f"m-{nth}"))
        assert len(state.message_seqs) == min(nth + 1, MAX_MESSAGE_IDS)
    newest = range(count - MAX_MESSAGE_IDS, count)
    assert state.message_seqs == {f"m-{nth}": 3 + nth for nth in newest}


# Actions and their answers.


def test_an_action_waits_for_its_answer() -> None:
    state = apply_events(opened_state(), user(), *actions("look", "write"))
    look = PendingAction(
        seq=4,
        action_id=id_of(4),
        tool_name="look",
        tool_call_id="call_0",
        response_id=state.pending[0].response_id,
        repeatable=True,
    )
    write = {"seq": 5, "action_id": id_of(5), "tool_name": "write", "tool_call_id": "call_1"}
    assert state.pending == (look, look.model_copy(update={**write, "repeatable": False}))
    assert (state.iterations, state.response_count) == (1, 1)


@pytest.mark.parametrize("answer", [observation, error, rejection])
def test_any_result_removes_the_pending_action(answer: Any) -> None:
    state = apply_events(
        opened_state(), user(), *actions("look", "write"), answer(id_of(5), "write")
    )
    assert [item.seq for item in state.pending] == [4]
    assert state.status == "running"


def test_an_action_that_cannot_be_run_does_not_wait() -> None:
    unread = action("fly", valid=False)
    state = apply_events(opened_state(), user(), unread, error(None, "fly"))
    assert (state.pending, state.status, state.iterations) == ((), "running", 1)


def test_a_second_answer_changes_nothing_that_is_decided_by() -> None:
    state = apply_events(opened_state(), user(), *actions("look"), observation(id_of(4)))
    again = apply_events(state, error(id_of(4)))
    seen = {"next_seq", "sha", "recent_events", "view_events", "view_tokens"}
    assert again.model_dump(exclude=seen) == state.model_dump(exclude=seen)


def test_usage_is_counted_with_the_first_event_of_an_answer() -> None:
    bill = Usage(prompt_tokens=10, completion_tokens=2, cost=0.5, latency=1.5)
    state = apply_events(
        apply_events(opened_state(), user()), *actions("look", "write"), usage=bill
    )
    assert state.usage == bill
    other = apply_events(state, *actions("look", response="response-2"), usage=bill)
    assert (other.usage.prompt_tokens, other.usage.cost, other.iterations) == (20, 1.0, 2)


# Finishing.


def test_finish_ends_the_turn() -> None:
    state = apply_events(
        opened_state(), user(), *actions("finish"), observation(id_of(4), "finish")
    )
    assert (state.status, state.turn_open, state.finish_call_seq, state.pending) == (
        "finished",
        False,
        None,
        (),
    )


def test_finish_ends_the_turn_only_when_its_batch_is_done() -> None:
    state = apply_events(opened_state(), user(), *actions("finish", "look", "write"))
    state = apply_events(state, observation(id_of(4), "finish"))
    assert (state.status, state.finish_call_seq) == ("running", 4)
    state = apply_events(state, error(id_of(6), "write"))
    assert state.status == "running"
    assert apply_events(state, observation(id_of(5))).status == "finished"


def test_a_finish_that_failed_ends_nothing() -> None:
    state = apply_events(opened_state(), user(), *actions("finish"))
    assert apply_events(state, error(id_of(4), "finish")).status == "running"
    seen = observation(id_of(4), "finish")
    bad = seen.observation.model_copy(update={"is_error": True})
    assert apply_events(state, seen.model_copy(update={"observation": bad})).status == "running"


def test_a_message_after_the_decision_to_finish_keeps_the_turn_open() -> None:
    state = apply_events(opened_state(), user(), *actions("finish"), user("Wait!"))
    state = apply_events(state, observation(id_of(4), "finish"))
    assert (state.status, state.turn_open, state.finish_call_seq) == ("running", True, None)


def test_a_message_before_the_decision_to_finish_does_not() -> None:
    state = apply_events(opened_state(), user(), user("And this."), *actions("finish"))
    assert apply_events(state, observation(id_of(5), "finish")).status == "finished"


# Opening, configuring, losing.


def test_a_conversation_that_is_opened_again_has_lost_the_calls_that_must_not_be_repeated() -> None:
    state = apply_events(opened_state(), user(), *actions("look", "write"), opened_event("run-2"))
    look, write = state.pending
    assert (look.outcome_unknown, write.outcome_unknown) == (None, LOST)
    assert state.run_id == "run-2"


def test_a_resumed_delegation_is_not_lost_with_its_workflow() -> None:
    lost = apply_events(
        opened_state(), user(), *actions("write", "delegate"), opened_event("run-2")
    )
    value = {"run_id": "run-3", "resumed": [5]}
    write, delegation = apply_events(lost, state_update("opened", value)).pending
    assert (write.outcome_unknown, delegation.outcome_unknown) == (LOST, None)


def test_the_notes_on_a_call_last_until_it_has_a_result() -> None:
    state = apply_events(opened_state(), user(), *actions("look", "write"))
    notes = note_lost_call(RunNotes(), 5, "It wrote 3 lines.")
    assert find_lost_call(state, RunNotes()) is None
    assert find_lost_call(state, update_notes(notes, state, [])) == (5, "It wrote 3 lines.")
    answered = apply_events(state, error(id_of(5), "write"))
    assert update_notes(notes, answered, []) == RunNotes()


def test_a_condensation_ends_the_postponement_of_condensing() -> None:
    state = apply_events(opened_state(), user())
    notes = postpone_condensing(RunNotes(), state)
    assert notes.condense_above == state.view_events + 10
    assert update_notes(notes, state, summaries_of(user())) == notes
    assert update_notes(notes, state, summaries_of(condensation(3, 3))) == RunNotes()


def test_a_spec_comes_into_force_with_its_slot() -> None:
    newer = SPEC.model_copy(update={"limits": Limits(max_iterations=9)})
    state = apply_events(opened_state(), spec_event(newer))
    assert (state.spec, state.spec_seq) == (newer, 3)


def test_a_prompt_tells_which_tools_may_be_run_again() -> None:
    assert apply_events(State(), opened_event(), spec_event()).prompt_seq is None
    assert (opened_state().prompt_seq, opened_state().tool_traits.repeatable) == (
        2,
        ("look", "finish"),
    )


# How large it is.


def full_state(skills: int, message_id: str, known: str) -> State:
    """Make a state with as much of everything as there can be in practice."""
    spec = SPEC.model_copy(
        update={
            "model": ModelSpec(name="openrouter/" + "m" * 100, api_base="https://" + "h" * 200),
            "system_prompt": "p" * 100_000,
            "tools": tuple(f"package.module:tool_number_{nth:03d}" for nth in range(60)),
            "mcp": tuple(McpServer(name=f"server-{nth}", command="npx") for nth in range(5)),
            "limits": Limits(max_budget=1.5, max_tokens=10**6, deadline=TIMESTAMP),
        }
    )
    state = apply_events(opened_state(spec), user(), error_event("e" * 500, "d" * 5_000))
    for nth in range(MAX_MESSAGE_IDS):
        state = apply_events(state, user("hi", f"{nth:{message_id}}"))
    for model in ("large", "small", "other"):
        for purpose in ("condense", "title"):
            state = apply_events(state, agent(), usage=large_usage(model=model, purpose=purpose))
    state = apply_events(
        state, recall_event("x", *(f"skill-with-a-long-name-{nth}" for nth in range(skills)))
    )
    state = apply_events(
        state,
        state_update("title", "t" * 200),
        system_message(by="limits"),
        system_message(by="stuck"),
    )
    batch = [written_event(nth) for nth in range(64)]
    state = apply_events(state, *batch, usage=large_usage())
    return lose_call(state, state.pending[0].seq, known)


def large_usage(**fields: Any) -> Usage:
    return Usage(prompt_tokens=10**9, cost=1234.56789, latency=1e6, **fields)


def written_event(nth: int) -> AnyEvent:
    path = (f"file:src/package/module_{nth:02d}/implementation.py",)
    return action("write", f"call_{nth:024d}", f"chatcmpl-{'r' * 30}", touches=path)


def size(value: State | Start) -> int:
    return len(to_json(value, exclude_none=True))


def test_a_full_state_has_less_than_64_kb() -> None:
    state = full_state(skills=40, message_id="036d", known="x" * 2_000)
    assert size(state) < 64 * 1024
    assert size(apply_events(state, opened_event("run-2"))) < 64 * 1024


def test_a_state_of_the_worst_kind_can_still_be_handed_over_with_a_full_inbox() -> None:
    inbox = 48 * 1024
    state = full_state(skills=100, message_id="0128d", known="\u0007" * 2_000)
    for each in (state, apply_events(state, opened_event("run-2"))):
        start = Start(conversation_id="c", user_id="u", state=each)
        assert size(start) + inbox < 128 * 1024


@pytest.mark.parametrize(
    ("status", "first", "last", "end", "at_rest", "at_end"),
    [
        ("idle", None, -1, 3, False, False),
        ("finished", 3, 3, 5, True, False),
        ("error", 3, 3, 5, True, False),
        ("stuck", 3, 400, 500, True, False),
        ("paused", 3, 3, 5, False, True),
        ("waiting_for_confirmation", 3, 3, 5, False, True),
        ("finished", 3, 3, 20_000, True, False),
        ("finished", 3, 500, 1_000, True, False),
        ("finished", 3, 501, 1_000, False, True),
        ("finished", 3, 19_990, 20_000, False, True),
    ],
)
def test_messages_are_saved_at_rest_where_they_are_not_much_more_than_the_turn(
    status: Status, first: int | None, last: int, end: int, at_rest: bool, at_end: bool
) -> None:
    state = State(status=status, first_user_seq=first, last_user_seq=last, next_seq=end)
    assert (saves_messages_at_rest(state), has_unsaved_messages(state)) == (at_rest, at_end)
