"""Turns, actions and their answers: how a conversation's state comes about."""

from typing import Any

import pytest
from pydantic_core import to_json

from agent.evolve import REMEMBERED
from agent.spec import Limits, McpServer, ModelSpec
from agent.start import Start
from agent.state import Pending, State, lost
from events.control import PauseEvent, StuckEvent
from events.event import AnyEvent
from events.tools import ActionEvent
from events.usage import Usage
from tests.builders import (
    SPEC,
    WHEN,
    action,
    after,
    agent,
    configured,
    error,
    failed,
    id_of,
    observation,
    opened,
    opening,
    rejection,
    status,
    updated,
    user,
)
from tests.logs import recall, told

LOST = "The conversation's workflow was lost while the call may have been running."


def asked(*names: str, response: str = "response-1") -> list[ActionEvent]:
    return [action(name, f"call_{nth}", response) for nth, name in enumerate(names)]


# Messages and turns.


def test_a_message_opens_a_turn() -> None:
    state = after(opening(), user(message_id="m"))
    assert (state.status, state.turn, state.owes, state.heard) == ("running", 1, True, 3)
    assert state.seen == {"m": 3}


def test_a_message_in_the_middle_of_a_turn_does_not_open_another() -> None:
    state = after(opening(), user(), action(), user())
    assert (state.turn, state.iterations, state.heard) == (1, 1, 5)


def test_words_end_the_turn() -> None:
    state = after(opening(), user(), agent())
    assert (state.status, state.owes, state.turn, state.iterations) == ("finished", False, 1, 1)


def test_a_new_turn_has_all_its_iterations() -> None:
    state = after(opening(), user(), agent(), user())
    assert (state.turn, state.iterations, state.answers) == (2, 0, 1)


def test_a_message_during_a_pause_waits_for_the_resumption() -> None:
    state = after(opening(), PauseEvent(timestamp=WHEN), user())
    assert (state.status, state.owes) == ("paused", True)
    assert after(state, status("resumed")).status == "running"


def test_who_owes_nothing_has_nothing_to_resume() -> None:
    assert after(opening(), status("resumed")).status == "idle"
    talked = after(opening(), user(), agent())
    assert after(talked, status("resumed")).status == "finished"
    assert after(talked, PauseEvent(timestamp=WHEN), status("resumed")).status == "idle"


def test_a_failure_has_a_reason_that_the_next_message_takes_away() -> None:
    state = after(opening(), user(), failed("auth", "Set a key."))
    assert (state.status, state.reason, state.owes) == ("error", "auth: Set a key.", True)
    again = after(state, user())
    assert (again.status, again.reason) == ("running", None)


def test_being_stuck_ends_with_the_next_message() -> None:
    stuck = StuckEvent(timestamp=WHEN, pattern="p", first_seq=0, last_seq=1, count=4)
    state = after(opening(), user(), stuck)
    assert state.status == "stuck"
    assert after(state, user()).status == after(state, status("resumed")).status == "running"


def test_only_the_newest_message_ids_are_remembered() -> None:
    state, count = opening(), REMEMBERED + 50
    for nth in range(count):
        state = after(state, user("hi", f"m-{nth}"))
        assert len(state.seen) == min(nth + 1, REMEMBERED)
    newest = range(count - REMEMBERED, count)
    assert state.seen == {f"m-{nth}": 3 + nth for nth in newest}


# Actions and their answers.


def test_an_action_waits_for_its_answer() -> None:
    state = after(opening(), user(), *asked("look", "write"))
    look = Pending(
        seq=4,
        action_id=id_of(4),
        tool_name="look",
        tool_call_id="call_0",
        batch=state.pending[0].batch,
        repeatable=True,
    )
    write = {"seq": 5, "action_id": id_of(5), "tool_name": "write", "tool_call_id": "call_1"}
    assert state.pending == (look, look.model_copy(update={**write, "repeatable": False}))
    assert (state.iterations, state.answers) == (1, 1)


@pytest.mark.parametrize("answer", [observation, error, rejection])
def test_any_answer_takes_an_action_off_the_list(answer: Any) -> None:
    state = after(opening(), user(), *asked("look", "write"), answer(id_of(5), "write"))
    assert [one.seq for one in state.pending] == [4]
    assert state.status == "running"


def test_an_action_that_cannot_be_run_does_not_wait() -> None:
    unread = action("fly", valid=False)
    state = after(opening(), user(), unread, error(None, "fly"))
    assert (state.pending, state.status, state.iterations) == ((), "running", 1)


def test_a_second_answer_changes_nothing_that_is_decided_by() -> None:
    state = after(opening(), user(), *asked("look"), observation(id_of(4)))
    again = after(state, error(id_of(4)))
    seen = {"next_seq", "sha", "recent", "shown", "tokens"}
    assert again.model_dump(exclude=seen) == state.model_dump(exclude=seen)


def test_usage_is_counted_with_the_first_event_of_an_answer() -> None:
    bill = Usage(prompt_tokens=10, completion_tokens=2, cost=0.5, latency=1.5)
    state = after(after(opening(), user()), *asked("look", "write"), usage=bill)
    assert state.spent == bill
    other = after(state, *asked("look", response="response-2"), usage=bill)
    assert (other.spent.prompt_tokens, other.spent.cost, other.iterations) == (20, 1.0, 2)


# Finishing.


def test_finish_ends_the_turn() -> None:
    state = after(opening(), user(), *asked("finish"), observation(id_of(4), "finish"))
    assert (state.status, state.owes, state.finish, state.pending) == ("finished", False, None, ())


def test_finish_ends_the_turn_only_when_its_batch_is_done() -> None:
    state = after(opening(), user(), *asked("finish", "look", "write"))
    state = after(state, observation(id_of(4), "finish"))
    assert (state.status, state.finish) == ("running", 4)
    state = after(state, error(id_of(6), "write"))
    assert state.status == "running"
    assert after(state, observation(id_of(5))).status == "finished"


def test_a_finish_that_failed_ends_nothing() -> None:
    state = after(opening(), user(), *asked("finish"))
    assert after(state, error(id_of(4), "finish")).status == "running"
    seen = observation(id_of(4), "finish")
    bad = seen.observation.model_copy(update={"is_error": True})
    assert after(state, seen.model_copy(update={"observation": bad})).status == "running"


def test_a_message_after_the_decision_to_finish_keeps_the_turn_open() -> None:
    state = after(opening(), user(), *asked("finish"), user("Wait!"))
    state = after(state, observation(id_of(4), "finish"))
    assert (state.status, state.owes, state.finish) == ("running", True, None)


def test_a_message_before_the_decision_to_finish_does_not() -> None:
    state = after(opening(), user(), user("And this."), *asked("finish"))
    assert after(state, observation(id_of(5), "finish")).status == "finished"


# Opening, configuring, losing.


def test_a_conversation_that_is_opened_again_has_lost_the_calls_that_must_not_be_repeated() -> None:
    state = after(opening(), user(), *asked("look", "write"), opened("run-2"))
    look, write = state.pending
    assert (look.lost, write.lost) == (None, LOST)
    assert state.run_id == "run-2"


def test_a_lost_call_is_marked_with_what_is_known_of_it() -> None:
    state = after(opening(), user(), *asked("look", "write"))
    look, write = lost(state, 5, "It wrote 3 lines.").pending
    assert (look.lost, write.lost) == (None, "It wrote 3 lines.")


def test_a_spec_comes_into_force_with_its_slot() -> None:
    newer = SPEC.model_copy(update={"limits": Limits(max_iterations=9)})
    state = after(opening(), configured(newer))
    assert (state.spec, state.spec_seq) == (newer, 3)


def test_a_prompt_tells_which_tools_may_be_run_again() -> None:
    assert after(State(), opened(), configured()).prompt_seq is None
    assert (opening().prompt_seq, opening().tools.repeatable) == (2, ("look", "finish"))


# How large it is.


def full(skills: int, message_id: str, known: str) -> State:
    """A state that remembers as much of everything as it can in practice."""
    spec = SPEC.model_copy(
        update={
            "model": ModelSpec(name="openrouter/" + "m" * 100, api_base="https://" + "h" * 200),
            "system_prompt": "p" * 100_000,
            "tools": tuple(f"package.module:tool_number_{nth:03d}" for nth in range(60)),
            "mcp": tuple(McpServer(name=f"server-{nth}", command="npx") for nth in range(5)),
            "limits": Limits(max_budget=1.5, max_tokens=10**6, deadline=WHEN),
        }
    )
    state = after(opening(spec), user(), failed("e" * 500, "d" * 5_000))
    for nth in range(REMEMBERED):
        state = after(state, user("hi", f"{nth:{message_id}}"))
    for model in ("large", "small", "other"):
        for purpose in ("condense", "title"):
            state = after(state, agent(), usage=costly(model=model, purpose=purpose))
    state = after(state, recall("x", *(f"skill-with-a-long-name-{nth}" for nth in range(skills))))
    state = after(state, updated("title", "t" * 200), told(by="limits"), told(by="stuck"))
    batch = [written(nth) for nth in range(64)]
    state = after(state, *batch, usage=costly())
    return lost(state, state.pending[0].seq, known)


def costly(**fields: Any) -> Usage:
    return Usage(prompt_tokens=10**9, cost=1234.56789, latency=1e6, **fields)


def written(nth: int) -> AnyEvent:
    path = (f"file:src/package/module_{nth:02d}/implementation.py",)
    return action("write", f"call_{nth:024d}", f"chatcmpl-{'r' * 30}", touches=path)


def size(value: State | Start) -> int:
    return len(to_json(value, exclude_none=True))


def test_a_full_state_has_less_than_64_kb() -> None:
    state = full(skills=40, message_id="036d", known="x" * 2_000)
    assert size(state) < 64 * 1024
    assert size(after(state, opened("run-2"))) < 64 * 1024


def test_a_state_of_the_worst_kind_can_still_be_handed_over_with_a_full_inbox() -> None:
    inbox = 48 * 1024
    state = full(skills=100, message_id="0128d", known="\u0007" * 2_000)
    for each in (state, after(state, opened("run-2"))):
        start = Start(conversation_id="c", user_id="u", state=each)
        assert size(start) + inbox < 128 * 1024
