"""What a conversation tells others of follows from its events."""

from perdure.agent.loop.notices import MAX_TEXT_CHARS, Notice, find_notice
from perdure.agent.loop.state import State
from perdure.agent.policies import Confirmation
from perdure.events.control import InterruptEvent, StuckEvent
from perdure.events.event import AnyEvent
from perdure.events.waiting import QuestionEvent, WaitEvent
from tests.builders import (
    SPEC,
    TIMESTAMP,
    action,
    agent,
    apply_events,
    error_event,
    id_of,
    observation,
    opened_state,
    status_event,
    user,
)

TALKED = apply_events(opened_state(), user())


def notice(state: State, event: AnyEvent) -> Notice | None:
    return find_notice(state, apply_events(state, event), event)


def test_an_answer_ends_a_turn() -> None:
    told = notice(TALKED, agent("Which one?"))
    assert told is not None
    assert (told.kind, told.text, told.status, told.turn) == (
        "turn_end",
        "Which one?",
        "finished",
        1,
    )
    long = notice(TALKED, agent("a" * (MAX_TEXT_CHARS + 1)))
    assert long is not None
    assert len(long.text) == MAX_TEXT_CHARS


def test_each_turn_has_its_end() -> None:
    answered = apply_events(TALKED, agent("First."))
    again = apply_events(answered, user())
    told = notice(again, agent("Second."))
    assert told is not None
    assert (told.turn, told.text) == (2, "Second.")


def test_an_error_and_a_loop_are_errors() -> None:
    failed = notice(TALKED, error_event("auth", "Set a key."))
    assert failed is not None
    assert failed.detail is not None
    assert (failed.kind, failed.detail.reason) == ("error", "auth: Set a key.")
    loop = {"pattern": "monologue", "first_seq": 3, "last_seq": 9, "count": 3}
    stuck = notice(TALKED, StuckEvent(timestamp=TIMESTAMP, **loop))
    assert stuck is not None
    assert (stuck.kind, stuck.status) == ("error", "stuck")


def test_actions_that_wait_are_named() -> None:
    asking = SPEC.model_copy(update={"confirmation": Confirmation(policy="always")})
    called = apply_events(opened_state(asking), user(), action("charge", "call_0"))
    told = notice(called, status_event("waiting_for_confirmation"))
    assert told is not None
    assert told.kind == "approval"
    assert [(it.tool_name, it.tool_call_id) for it in told.calls] == [("charge", "call_0")]


def test_what_changes_no_status_or_what_a_person_did_is_no_notice() -> None:
    assert notice(opened_state(), user()) is None
    called = apply_events(TALKED, action("look", "call_0"))
    assert notice(TALKED, action("look", "call_0")) is None
    assert notice(called, observation(id_of(called.next_seq - 1))) is None
    assert notice(TALKED, InterruptEvent(timestamp=TIMESTAMP)) is None
    answered = apply_events(TALKED, agent("Done."))
    assert notice(answered, status_event("closed")) is None


def test_a_question_is_told_with_its_choices_and_its_end() -> None:
    called = apply_events(TALKED, action("ask_user", "call_0"))
    [pending] = called.pending
    call = {"timestamp": TIMESTAMP, "action_id": pending.action_id, "tool_call_id": "call_0"}
    until = "2026-03-02T09:00:00.000000"
    question = QuestionEvent(**call, question="Which?", choices=("red", "blue"), until=until)
    told = notice(called, question)
    assert told is not None
    assert told.kind == "question"
    assert told.detail is not None
    wait = told.detail.wait
    assert wait is not None
    assert (wait.call, wait.question, wait.choices) == ("call_0", "Which?", ("red", "blue"))
    assert wait.until == until
    assert notice(called, WaitEvent(**call, until=until)) is None
