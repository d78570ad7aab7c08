"""Whatever comes of its steps, a conversation goes on until it rests, and can go on from there."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_core import to_json

from agent.decide import decide
from agent.evolve import fold
from agent.inbox import CloseAsked, Confirmed, Item, ResumeAsked, Said
from agent.state import State, asking
from agent.steps import Record
from tests.agent.driving import Drive

LONG_ENOUGH = 120
"""Rounds of steps: a turn has at most 4 answers of 3 calls, each lost and settled and each answer
after 3 overflows that are condensed, a warning, a nudge, a failure and a title."""


def driven(data: st.DataObject) -> Drive:
    """A conversation in which all kinds of people have wanted all kinds of things."""
    drive = Drive(data)
    drive.inbox.append(Said(text="hi"))
    for _ in range(data.draw(st.integers(0, 6), label="disturbances")):
        for _ in range(data.draw(st.integers(0, 6), label="rounds")):
            drive.step()
        drive.disturb()
    return drive


@given(st.data())
@settings(max_examples=60)
def test_it_always_comes_to_rest(data: st.DataObject) -> None:
    drive = driven(data)
    assert drive.rest(LONG_ENOUGH)
    assert drive.state.at_rest
    assert not drive.inbox
    assert not [one for one in drive.state.pending if one.lost]
    waits = drive.state.status == "waiting_for_confirmation"
    assert not waits or asking(drive.state)
    assert drive.state.owes or drive.state.status not in ("running", "waiting_for_confirmation")


@given(st.data())
@settings(max_examples=60)
def test_no_state_is_a_dead_end(data: st.DataObject) -> None:
    """From any moment on, whatever is asked of a person, there is a way to the next answer."""
    drive = driven(data)
    if drive.state.status == "closed" or CloseAsked() in drive.inbox:
        return
    drive.rest(LONG_ENOUGH)
    ways: list[Item] = [ResumeAsked(), Said(text="Go on.")]
    if waiting := asking(drive.state):
        ways = [Confirmed(actions=tuple(one.seq for one in waiting)), *ways]
    drive.inbox = data.draw(st.permutations(ways))
    while drive.inbox:
        assert isinstance(drive.step()[0], Record)
    assert drive.state.status == "running"
    assert decide(drive.state, (), drive.seconds_left)
    assert drive.rest(LONG_ENOUGH)


@given(st.data())
@settings(max_examples=30)
def test_a_resumption_alone_leads_on_where_nobody_is_asked_anything(data: st.DataObject) -> None:
    drive = driven(data)
    drive.rest(LONG_ENOUGH)
    before = drive.state
    if before.status in ("closed", "waiting_for_confirmation") or not before.owes:
        return
    drive.inbox = [ResumeAsked()]
    drive.step()
    assert drive.state.status == "running"
    assert decide(drive.state, (), drive.seconds_left)


@given(st.data())
@settings(max_examples=30)
def test_a_person_who_answers_leads_on(data: st.DataObject) -> None:
    drive = driven(data)
    drive.rest(LONG_ENOUGH)
    waiting = asking(drive.state)
    if not waiting or drive.state.status == "paused":
        return
    drive.inbox = [Confirmed(actions=tuple(one.seq for one in waiting)), ResumeAsked()]
    drive.step()
    assert drive.state.status == "running"
    assert decide(drive.state, (), drive.seconds_left)


@given(st.data())
@settings(max_examples=30)
def test_it_can_be_closed_at_any_moment(data: st.DataObject) -> None:
    drive = driven(data)
    drive.inbox.append(CloseAsked())
    assert drive.rest(LONG_ENOUGH)
    assert drive.state.status == "closed"
    assert drive.state.pending == ()
    assert decide(drive.state, (), drive.seconds_left) == ()


LOCAL: Any = {"pending": {"__all__": {"lost"}}, "hopeless": True, "title": True}
"""What a workflow knows by itself: the log does not hold it."""


@given(st.data())
@settings(max_examples=40)
def test_what_it_knows_is_what_its_log_says(data: st.DataObject) -> None:
    drive = driven(data)
    replayed = fold(State(), drive.log)
    assert replayed.model_dump(exclude=LOCAL) == drive.state.model_dump(exclude=LOCAL)
    assert len(to_json(drive.state, exclude_none=True)) < 64 * 1024
