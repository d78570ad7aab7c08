"""What any provider asks of a prompt, whatever the log holds."""

import json
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from agent.transcript import ChatMessage, Transcript
from events.entry import Entry
from events.messages import MessageEvent
from events.tools import ActionEvent
from tests.logs import logs


def check_well_formed(messages: Sequence[ChatMessage]) -> None:
    rest, ids = list(messages), []
    while rest:
        message = rest.pop(0)
        assert message["role"] in ("system", "user", "assistant")
        calls = message.get("tool_calls")
        assert calls is None or calls
        assert message["content"] or calls
        for call in calls or ():
            answer = rest.pop(0)
            assert (answer["role"], answer["tool_call_id"]) == ("tool", call["id"])
            assert isinstance(json.loads(call["function"]["arguments"]), dict)
            ids.append(call["id"])
    assert len(ids) == len(set(ids))
    assert all(ids)
    assert [message["role"] for message in messages].count("system") <= 1


@given(logs)
def test_a_prompt_is_well_formed_at_every_moment(log: list[Entry]) -> None:
    transcript = Transcript()
    for entry in log:
        transcript.add(entry.event)
        check_well_formed(transcript.messages())


@given(logs)
def test_every_message_of_a_person_is_there_once_and_in_order(log: list[Entry]) -> None:
    transcript, heard = Transcript(), []
    for entry in log:
        event = entry.event
        transcript.add(event)
        if isinstance(event, MessageEvent) and event.source == "user":
            heard.append(f"message {entry.seq}")
        messages = transcript.messages()
        assert [one["content"] for one in messages if one["role"] == "user"] == heard


@given(logs, st.data())
def test_a_transcript_grows_as_if_it_were_made_at_once(
    log: list[Entry], data: st.DataObject
) -> None:
    events = [entry.event for entry in log]
    cut = data.draw(st.integers(0, len(events)))
    whole, grown = Transcript(), Transcript()
    whole.extend(events)
    grown.extend(events[:cut])
    grown.messages().clear()  # the list is the caller's
    grown.extend(events[cut:])
    assert grown.messages() == whole.messages()
    assert grown.tools == whole.tools


@given(logs)
def test_a_batch_is_shown_when_every_call_has_its_result_and_else_not_at_all(
    log: list[Entry],
) -> None:
    transcript = Transcript()
    transcript.extend(entry.event for entry in log)
    calls = [len(one["tool_calls"]) for one in transcript.messages() if one.get("tool_calls")]
    assert calls == [len(batch) for batch, answers in windows(log) if whole(batch, answers)]


def windows(log: list[Entry]) -> list[tuple[list[ActionEvent], list[str | None]]]:
    """Each batch, with the ids of the actions that were answered before the next batch began."""
    found: list[tuple[list[ActionEvent], list[str | None]]] = []
    for entry in log:
        event = entry.event
        if isinstance(event, ActionEvent):
            if not found or found[-1][0][-1].llm_response_id != event.llm_response_id:
                found.append(([], []))
            found[-1][0].append(event)
        elif found and event.kind in ANSWERS and hasattr(event, "action_id"):
            found[-1][1].append(event.action_id)
    return found


ANSWERS = ("ObservationEvent", "AgentErrorEvent", "UserRejectObservation")


def whole(batch: list[ActionEvent], answers: list[str | None]) -> bool:
    """The calls that could not be read are answered as soon as they are on record."""
    return {event.id for event in batch if event.action} <= set(answers)
