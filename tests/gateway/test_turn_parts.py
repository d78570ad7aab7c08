"""Turns as neutral parts: tables of frames, and what follows from them."""

import json
from typing import Any

import pytest

from perdure.agent.loop.start import ConversationStatus, PendingCall
from perdure.agent.loop.status import Status
from perdure.api.frames import (
    DeltaFrame,
    DurableFrame,
    ErrorFrame,
    Frame,
    ItemAbortedFrame,
    StatusFrame,
    SyncFrame,
)
from perdure.events.content import Message, MessageToolCall, TextContent
from perdure.events.control import ConversationErrorEvent, StuckEvent
from perdure.events.entry import Origin, make_entry
from perdure.events.event import AnyEvent
from perdure.events.messages import MessageEvent
from perdure.events.observations import FinishObservation, MCPToolObservation
from perdure.events.tools import (
    ActionEvent,
    AgentErrorEvent,
    ObservationEvent,
    UserRejectObservation,
)
from perdure.events.usage import Usage
from perdure.gateway.turn_parts import (
    Asked,
    Called,
    Ended,
    Failed,
    Part,
    Reasoning,
    Returned,
    Text,
    TurnReader,
)

SEQ = 4
"""The slot of the user's message."""

TIME = {"timestamp": "2026-01-01T00:00:00.000000"}
ITEM = "run:5"


def durable(seq: int, event: AnyEvent, activity: str = "5", cost: float = 0.0) -> DurableFrame:
    usage = Usage(cost=cost) if cost else None
    entry = make_entry(seq, event, Origin(run="run", activity=activity), usage)
    return DurableFrame(seq=seq, entry=json.loads(entry.body))


def says(text: str, reasoning: str | None = None, **more: Any) -> MessageEvent:
    content = (TextContent(text=text),) if text else ()
    message = Message(role="assistant", content=content, reasoning_content=reasoning)
    fields = {**TIME, "llm_response_id": "r", **more}
    return MessageEvent(source="agent", llm_message=message, **fields)


def calls(name: str, thought: str = "", call_id: str = "c") -> ActionEvent:
    return ActionEvent(
        **TIME,
        thought=(TextContent(text=thought),) if thought else (),
        tool_name=name,
        tool_call_id=call_id,
        tool_call=MessageToolCall(id=call_id, name=name, arguments='{"a":1}', origin="completion"),
        llm_response_id="r",
    )


def returns(text: str, name: str = "add", *, is_error: bool = False) -> ObservationEvent:
    content = (TextContent(text=text),)
    observation = MCPToolObservation(content=content, is_error=is_error, tool_name=name)
    ids = {"action_id": "x", "tool_name": name, "tool_call_id": "c"}
    return ObservationEvent(**TIME, **ids, source="environment", observation=observation)


def finishes(text: str) -> ObservationEvent:
    observation = FinishObservation(content=(TextContent(text=text),))
    ids = {"action_id": "x", "tool_name": "finish", "tool_call_id": "c"}
    return ObservationEvent(**TIME, **ids, source="environment", observation=observation)


def fails(text: str, name: str = "add") -> AgentErrorEvent:
    ids = {"action_id": "x", "tool_name": name, "tool_call_id": "c"}
    return AgentErrorEvent(**TIME, **ids, error=text, classification="bad_arguments")


def rejects(reason: str) -> UserRejectObservation:
    ids = {"action_id": "x", "tool_name": "add", "tool_call_id": "c"}
    return UserRejectObservation(**TIME, **ids, rejection_reason=reason)


def delta(text: str, offset: int = 0, attempt: int = 1, step: str = "llm.chat") -> DeltaFrame:
    fields = {"item_id": "5", "run": "run", "step": step, "order": 0}
    return DeltaFrame(**fields, attempt=attempt, offset=offset, text=text)


def status(next_seq: int, name: Status = "finished", *pending: PendingCall) -> StatusFrame:
    return StatusFrame(
        status=ConversationStatus(
            conversation_id="c", status=name, turn=1, next_seq=next_seq, pending=pending
        )
    )


def read(*frames: Frame) -> list[Part]:
    reader = TurnReader(SEQ)
    return [part for frame in frames for part in reader.take(frame)]


def end(seq: int, name: Status = "finished", cost: float = 0.0) -> Ended:
    return Ended(name, None, Usage(cost=cost), seq)


ASKED = PendingCall(seq=5, tool_name="add", tool_call_id="c", risk="HIGH", asks=True)
WAITS = PendingCall(seq=5, tool_name="add", tool_call_id="c", risk="LOW", asks=False)
CALLED = Called(ITEM, "c", "add", '{"a":1}')

CASES: dict[str, tuple[list[Frame], list[Part]]] = {
    "an answer": (
        [durable(5, says("Hi."), cost=0.5), status(6)],
        [Text(ITEM, "Hi.", last=True, final=True), end(5, cost=0.5)],
    ),
    "an answer that grows": (
        [delta("H"), delta("i", 1), durable(5, says("Hi.")), status(6)],
        [
            Text(ITEM, "H"),
            Text(ITEM, "i"),
            Text(ITEM, ".", last=True, final=True),
            end(5),
        ],
    ),
    "reasoning": (
        [durable(5, says("Hi.", "Hm.")), status(6)],
        [Reasoning(ITEM, "Hm."), Text(ITEM, "Hi.", last=True, final=True), end(5)],
    ),
    "a call": (
        [
            durable(5, calls("add", "I add.")),
            durable(6, returns("2"), "6"),
            durable(7, says("It is 2."), "7"),
            status(8),
        ],
        [
            Text(ITEM, "I add.", last=True),
            CALLED,
            Returned("c", "add", "2"),
            Text("run:7", "It is 2.", last=True, final=True),
            end(7),
        ],
    ),
    "a call without words": ([durable(5, calls("add"))], [CALLED]),
    "calls side by side": (
        [delta("I add"), durable(5, calls("add", "I add.")), durable(6, calls("sub", "", "d"))],
        [
            Text(ITEM, "I add"),
            Text(ITEM, ".", last=True),
            CALLED,
            Called(ITEM, "d", "sub", '{"a":1}'),
        ],
    ),
    "a call that fails": (
        [durable(5, calls("add")), durable(6, fails("no"), "6")],
        [CALLED, Returned("c", "add", "no", is_error=True)],
    ),
    "a result that is an error": (
        [durable(5, calls("add")), durable(6, returns("no", is_error=True), "6")],
        [CALLED, Returned("c", "add", "no", is_error=True)],
    ),
    "a call that is rejected": (
        [durable(5, calls("add")), durable(6, rejects("no"), "6")],
        [CALLED, Returned("c", "add", "no", is_error=True)],
    ),
    "the tool that ends a turn": (
        [durable(5, calls("finish", "Done so.")), durable(6, finishes("Done."), "6"), status(7)],
        [
            Text(ITEM, "Done so.", last=True),
            Text("run:6", "Done.", last=True, final=True),
            end(6),
        ],
    ),
    "the tool that ends a turn, with wrong arguments": (
        [durable(5, calls("finish")), durable(6, fails("no", "finish"))],
        [
            Called(ITEM, "c", "finish", '{"a":1}'),
            Returned("c", "finish", "no", is_error=True),
        ],
    ),
    "a person is asked": (
        [durable(5, calls("add")), status(6, "waiting_for_confirmation", ASKED)],
        [CALLED, Asked((ASKED,)), end(5, "waiting_for_confirmation")],
    ),
    "a pause in the middle": ([durable(5, calls("add")), status(6, "paused", WAITS)], [CALLED]),
    "an error": (
        [
            delta("H"),
            durable(5, ConversationErrorEvent(**TIME, code="auth", detail="No key."), "5 failure"),
            status(6, "error"),
        ],
        [Text(ITEM, "H"), Text(ITEM, "", last=True), Failed("auth", "No key."), end(5, "error")],
    ),
    "an interrupt": (
        [
            delta("H"),
            durable(5, says("Hi", llm_response_id=None, sender="interrupted"), "5 partial"),
            status(6, "idle"),
        ],
        [Text(ITEM, "H"), Text(ITEM, "i", last=True), end(5, "idle")],
    ),
    "a step that is aborted": (
        [delta("H"), ItemAbortedFrame(item_id="5", run="run"), status(5, "idle")],
        [Text(ITEM, "H"), Text(ITEM, "", last=True), end(4, "idle")],
    ),
    "a second attempt that says the same": (
        [delta("Hi"), delta("", attempt=2), delta("Hi.", attempt=2), durable(5, says("Hi. You."))],
        [Text(ITEM, "Hi"), Text(ITEM, "."), Text(ITEM, " You.", last=True, final=True)],
    ),
    "a second attempt that says something else": (
        [delta("Hi"), delta("Hello", attempt=2), durable(5, says("Hello."))],
        [Text(ITEM, "Hi"), Text(ITEM, "\nHello.", last=True, final=True)],
    ),
    "a text of which the beginning is not known": (
        [delta("i.", 1), durable(5, says("Hi."))],
        [Text(ITEM, "Hi.", last=True, final=True)],
    ),
    "the output of a tool": ([delta("files", step="tool.call")], []),
    "what came before": (
        [SyncFrame(from_seq=5, through_seq=5), status(6), durable(4, says("Old.")), status(6)],
        [],
    ),
    "a status that comes before its entries": (
        [status(6), durable(5, says("Hi."))],
        [Text(ITEM, "Hi.", last=True, final=True), end(5)],
    ),
    "a turn that is over": (
        [durable(5, says("Hi.")), status(6), durable(6, says("More.")), status(7)],
        [Text(ITEM, "Hi.", last=True, final=True), end(5)],
    ),
    "a connection that ends": (
        [delta("H"), ErrorFrame(code="shutdown", detail="Bye.")],
        [
            Text(ITEM, "H"),
            Text(ITEM, "", last=True),
            Failed("shutdown", "Bye."),
            Ended("error", "Bye.", Usage(), 4),
        ],
    ),
    "the answer to a request": ([ErrorFrame(code="invalid", detail="No.", id="1")], []),
}


@pytest.mark.parametrize("name", CASES)
def test_the_parts_follow_from_the_frames(name: str) -> None:
    frames, expected = CASES[name]
    assert read(*frames) == expected


def test_an_agent_that_is_stuck_has_failed() -> None:
    stuck = StuckEvent(**TIME, pattern="repeat", first_seq=1, last_seq=3, count=3)
    [failed, ended] = read(durable(5, stuck), status(6, "stuck"))
    assert isinstance(failed, Failed)
    assert failed.code == "stuck"
    assert ended == end(5, "stuck")
