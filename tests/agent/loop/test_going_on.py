"""A conversation with any outcomes of its steps comes to rest, and can go on from there."""

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_core import to_json

from perdure.agent.loop.decide import decide
from perdure.agent.loop.evolve import fold
from perdure.agent.loop.inbox import Approval, CloseRequest, InboxItem, ResumeRequest, UserMessage
from perdure.agent.loop.state import (
    State,
    actions_to_confirm,
    find_lost_call,
)
from perdure.agent.loop.steps import Record
from tests.agent.driver import RandomConversation

LONG_ENOUGH = 120
"""Rounds of steps: a turn has at most 4 answers of 3 calls, each lost and settled and each answer
after 3 overflows that are condensed, a warning, a nudge, a failure and a title."""


def run_randomly(data: st.DataObject) -> RandomConversation:
    """Drive a conversation by random requests."""
    drive = RandomConversation(data)
    drive.inbox.append(UserMessage(text="hi"))
    for _ in range(data.draw(st.integers(0, 6), label="disturbances")):
        for _ in range(data.draw(st.integers(0, 6), label="rounds")):
            drive.step()
        drive.add_request()
    return drive


@given(st.data())
@settings(max_examples=60)
def test_a_conversation_always_comes_to_rest(data: st.DataObject) -> None:
    drive = run_randomly(data)
    assert drive.runs_to_rest(LONG_ENOUGH)
    assert drive.state.at_rest
    assert not drive.inbox
    assert find_lost_call(drive.state, drive.notes) is None
    waits = drive.state.status == "waiting_for_confirmation"
    assert not waits or actions_to_confirm(drive.state)
    assert drive.state.turn_open or drive.state.status not in (
        "running",
        "waiting_for_confirmation",
    )


@given(st.data())
@settings(max_examples=60)
def test_no_state_is_a_dead_end(data: st.DataObject) -> None:
    """From any moment on, whatever is asked of a person, there is a way to the next answer."""
    drive = run_randomly(data)
    if drive.state.status == "closed" or CloseRequest() in drive.inbox:
        return
    drive.runs_to_rest(LONG_ENOUGH)
    ways: list[InboxItem] = [ResumeRequest(), UserMessage(text="Go on.")]
    if waiting := actions_to_confirm(drive.state):
        ways = [Approval(actions=tuple(item.seq for item in waiting)), *ways]
    drive.inbox = data.draw(st.permutations(ways))
    while drive.inbox:
        assert isinstance(drive.step()[0], Record)
    assert drive.state.status == "running"
    assert decide(drive.state, (), drive.seconds_left, drive.notes)
    assert drive.runs_to_rest(LONG_ENOUGH)


@given(st.data())
@settings(max_examples=30)
def test_a_resumed_conversation_without_confirmations_goes_on(data: st.DataObject) -> None:
    drive = run_randomly(data)
    drive.runs_to_rest(LONG_ENOUGH)
    before = drive.state
    if before.status in ("closed", "waiting_for_confirmation") or not before.turn_open:
        return
    drive.inbox = [ResumeRequest()]
    drive.step()
    assert drive.state.status == "running"
    assert decide(drive.state, (), drive.seconds_left, drive.notes)


@given(st.data())
@settings(max_examples=30)
def test_an_answered_confirmation_lets_the_conversation_go_on(data: st.DataObject) -> None:
    drive = run_randomly(data)
    drive.runs_to_rest(LONG_ENOUGH)
    waiting = actions_to_confirm(drive.state)
    if not waiting or drive.state.status == "paused":
        return
    drive.inbox = [Approval(actions=tuple(item.seq for item in waiting)), ResumeRequest()]
    drive.step()
    assert drive.state.status == "running"
    assert decide(drive.state, (), drive.seconds_left, drive.notes)


@given(st.data())
@settings(max_examples=30)
def test_a_conversation_can_be_closed_at_any_moment(data: st.DataObject) -> None:
    drive = run_randomly(data)
    drive.inbox.append(CloseRequest())
    assert drive.runs_to_rest(LONG_ENOUGH)
    assert drive.state.status == "closed"
    assert drive.state.pending == ()
    assert decide(drive.state, (), drive.seconds_left, drive.notes) == ()


@given(st.data())
@settings(max_examples=40)
def test_the_state_is_the_fold_of_the_log(data: st.DataObject) -> None:
    drive = run_randomly(data)
    saved = State.model_validate_json(drive.state.model_dump_json())
    assert fold(State(), drive.log) == drive.state == saved
    assert len(to_json(drive.state, exclude_none=True)) < 64 * 1024
