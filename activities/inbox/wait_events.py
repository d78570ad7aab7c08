"""The events of waits: their beginnings, and the results that end them."""

import json
from datetime import datetime, timedelta

from perdure.activities.support.inbox_events import answer_fields
from perdure.activities.support.load import load_event
from perdure.activities.support.step import now
from perdure.activities.support.writer import Writer
from perdure.agent.loop.inbox import Answer, WaitEnd, WaitStart
from perdure.events.actions import MCPToolAction
from perdure.events.base import TIMESTAMP_FORMAT
from perdure.events.content import TextContent
from perdure.events.event import Event
from perdure.events.observations import MCPToolObservation
from perdure.events.status import describe_time, describe_wait
from perdure.events.tools import ActionEvent, AgentErrorEvent, ObservationEvent, WaitEnding
from perdure.events.waiting import QuestionEvent, SignalEvent, WaitEvent
from perdure.storage.log.event_log import EventLog

NOT_ASKED = (
    "The question was not asked, as a message of the user came first: ask it again if it is still "
    "open."
)
NOT_BEGUN = "The wait did not begin, as a message of the user came first."
ANSWERED_BY_MESSAGE = "The user answers with the message that follows."
ENDED_BY_MESSAGE = "The wait ended early, at {now}: the user sent the message that follows."
UNANSWERED = (
    "Nobody answered until {now}: go on by your own judgement and say what you have assumed, or "
    "wait and ask again."
)


async def record_wait(writer: Writer, part: str, item: WaitStart | WaitEnd | Answer) -> None:
    """Record the beginning or the end of a wait."""
    action = await load_event(writer.log, item.action, ActionEvent)
    match item:
        case WaitStart():
            event = start_event(action, now())
        case WaitEnd():
            event = await _end_event(writer.log, action, item)
        case Answer():
            text = f"The user answers: {item.text}"
            event = _result(action, "answer", text, item.actor)
    await writer.write(part, event)


def start_event(action: ActionEvent, at: str) -> Event:
    """Return the event that begins the wait of an action, at a time in UTC.

    A call that is none of ours, though a tool said that it waits, has an error in its place.
    """
    data = action.action.data if isinstance(action.action, MCPToolAction) else {}
    call = {"timestamp": at, "action_id": action.id, "tool_call_id": action.tool_call_id}
    until = find_end(data.get("until"), data.get("seconds"), at)
    match data:
        case {"question": str(question)}:
            choices = tuple(data.get("choices", ()))
            return QuestionEvent(**call, question=question, choices=choices, until=until)
        case _ if until is not None or "signal" in data:
            return WaitEvent(**call, until=until, signal=data.get("signal"))
    return AgentErrorEvent(
        **answer_fields(action, at),
        error=f"{action.tool_name} does not say what it waits for.",
        classification="bad_arguments",
    )


def find_end(until: str | None, seconds: float | None, at: str) -> str | None:
    """Return the time at which a wait ends that begins at `at`; all times are UTC."""
    if until is not None or seconds is None:
        return until
    end = datetime.fromisoformat(at) + timedelta(seconds=seconds)
    return end.strftime(TIMESTAMP_FORMAT)


async def _end_event(log: EventLog, action: ActionEvent, end: WaitEnd) -> Event:
    text = await _describe_end(log, start_event(action, now()), end)
    return _result(action, end.ended_by, text)


async def _describe_end(log: EventLog, start: Event, end: WaitEnd) -> str:
    """Describe the end of a wait to the agent."""
    is_question = isinstance(start, QuestionEvent)
    at = describe_time(now())
    match end.ended_by:
        case "message" if not end.has_begun:
            return NOT_ASKED if is_question else NOT_BEGUN
        case "message":
            return ANSWERED_BY_MESSAGE if is_question else ENDED_BY_MESSAGE.format(now=at)
        case "signal":
            assert end.signal_seq is not None, "a signal that ends a wait is in the log"
            return _describe_signal(await load_event(log, end.signal_seq, SignalEvent))
        case "time" if is_question:
            return UNANSWERED.format(now=at)
        case "time":
            signal = start.signal if isinstance(start, WaitEvent) else None
            missed = f", and {describe_wait(None, signal)} nothing came" if signal else ""
            return f"The time has come: it is {at}{missed}."


def _describe_signal(signal: SignalEvent) -> str:
    head = f"The signal {signal.name!r} came at {describe_time(signal.timestamp)}"
    if signal.data is None:
        return f"{head}, without data."
    return f"{head}, with this data:\n{json.dumps(signal.data, ensure_ascii=False)}"


def _result(
    action: ActionEvent, ended_by: WaitEnding, text: str, actor: str | None = None
) -> ObservationEvent:
    content = (TextContent(text=text),)
    return ObservationEvent(
        **answer_fields(action, now()),
        observation=MCPToolObservation(tool_name=action.tool_name, content=content),
        ended_by=ended_by,
        actor=actor,
    )
