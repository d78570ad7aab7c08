"""The turn of a step, and the step that tells that a turn is over."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from perdure.agent.loop.inbox import StateNote, UserMessage
from perdure.agent.loop.state import State
from perdure.agent.loop.steps import Record
from perdure.telemetry.identity import parse_traceparent, part_place, turn_place
from perdure.telemetry.turns import TurnPosition, TurnTrack, find_position
from tests.builders import CONVERSATION, agent, apply_events, error_event, opened_state, user

MESSAGE = Record(items=(UserMessage(text="hi"),))
NOTE = Record(items=(StateNote(key="title", value="A title"),))


def follow(*steps: tuple[State, str, Any]) -> list[TurnPosition]:
    """Return the positions of steps that a workflow begins one after the other."""
    track, positions = TurnTrack(), []
    for state, activity, step in steps:
        track, position = find_position(track, state, activity, step)
        positions.append(position)
    return positions


def test_a_message_belongs_to_the_turn_that_it_begins_and_an_end_is_told_once() -> None:
    opened = opened_state()
    running = apply_events(opened, user())
    finished = apply_events(running, agent())
    again = apply_events(finished, user())
    positions = follow(
        (opened, "log.append", MESSAGE),
        (running, "llm.chat", None),
        (finished, "conversation.save", None),
        (finished, "log.append", NOTE),
        (finished, "conversation.save", None),
        (finished, "log.append", MESSAGE),
        (again, "llm.chat", None),
    )
    assert [it.turn for it in positions] == [1, 1, 1, 1, 1, 2, 2]
    ends = [(nth, it.ended) for nth, it in enumerate(positions) if it.ended]
    [(nth, ended)] = ends
    assert nth == 2
    assert (ended.turn, ended.status, ended.error) == (1, "finished", None)
    assert (ended.first_seq, ended.last_seq) == (opened.next_seq, finished.next_seq - 1)


def test_a_turn_that_failed_has_the_code_of_its_error() -> None:
    running = apply_events(opened_state(), user())
    failed = apply_events(running, error_event("auth"))
    [_, saved] = follow((running, "llm.chat", None), (failed, "conversation.save", None))
    assert saved.ended is not None
    assert (saved.ended.status, saved.ended.error) == ("error", "auth")


def test_a_run_that_finds_a_turn_over_does_not_tell_of_it_again() -> None:
    finished = apply_events(opened_state(), user(), agent())
    [position] = follow((finished, "log.append", MESSAGE))
    assert position == TurnPosition(turn=2)


def test_a_conversation_that_is_not_open_has_no_turn_yet() -> None:
    assert follow((State(), "log.open", None)) == [TurnPosition(turn=None)]


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.text(), st.text())
def test_ids_follow_from_names_alone(turn: int, other: int, part: str, another: str) -> None:
    root = turn_place(CONVERSATION, turn)
    assert root == turn_place(CONVERSATION, turn)
    assert (root == turn_place(CONVERSATION, other)) == (turn == other)
    place = part_place(root, part)
    assert place.trace_id == root.trace_id
    assert (place == part_place(root, another)) == (part == another)
    assert parse_traceparent(place.traceparent) == place


@given(st.text(alphabet="0123456789abcdef-", max_size=60))
def test_what_is_no_traceparent_is_no_span(text: str) -> None:
    place = parse_traceparent(text)
    assert place is None or place.traceparent[3:52] == text[3:52]
