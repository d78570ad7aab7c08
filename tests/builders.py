"""Events, entries, digests and states, each in a line."""

import json
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID, uuid5

from agent.completion import Completion
from agent.evolve import fold
from agent.spec import Limits, ModelSpec, Spec
from agent.state import State
from events.actions import Action, FinishAction, MCPToolAction
from events.condensation import Condensation, CondensationRequest
from events.content import Message, MessageToolCall, TextContent, ToolAnnotations, ToolDefinition
from events.control import (
    ConversationErrorEvent,
    ConversationStateUpdateEvent,
    InterruptEvent,
    PauseEvent,
    SecurityAnalysisEvent,
    StuckEvent,
)
from events.digest import Digest
from events.entry import Entry, Origin, entry
from events.event import AnyEvent, UnknownEvent, event_from
from events.messages import MessageEvent, RecallEvent, SystemPromptEvent
from events.observations import FinishObservation, MCPToolObservation
from events.projection import digest
from events.risk import Risk
from events.tools import ActionEvent, AgentErrorEvent, ObservationEvent, UserRejectObservation
from events.usage import Usage

WHEN = "2026-03-01T09:00:00.000000"
CONVERSATION = "0199a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b"
ORIGIN = Origin(run="0199a1b2-0000-7000-8000-000000000001", activity="7")
SPEC = Spec(model=ModelSpec(name="scripted:story.json"), limits=Limits(max_iterations=5))
READERS = ("look", "finish")
"""The tools of `prompt()` that may be run a second time; `write` may not."""


def id_of(seq: int) -> str:
    """The id of the event in a slot."""
    return str(uuid5(UUID(CONVERSATION), str(seq)))


def placed(events: Iterable[AnyEvent], start: int = 0) -> list[AnyEvent]:
    """The events with the ids of their slots, as a log gives them."""
    return [_placed(event, seq) for seq, event in enumerate(events, start)]


def _placed(event: AnyEvent, seq: int) -> AnyEvent:
    if isinstance(event, UnknownEvent):
        return event_from({**event.raw, "id": id_of(seq)})
    return event.model_copy(update={"id": id_of(seq)})


def entries(events: Iterable[AnyEvent], start: int = 0) -> list[Entry]:
    """The events as a log stores them, from slot `start` on."""
    return [entry(seq, event, ORIGIN) for seq, event in enumerate(placed(events, start), start)]


def digests(*events: AnyEvent, start: int = 0, usage: Usage | None = None) -> list[Digest]:
    """What activities say of the events they have written; `usage` rides with the first."""
    made = placed(events, start)
    bills = _bills(made, usage)
    return [
        digest(entry(seq, event, ORIGIN, bill))
        for seq, (event, bill) in enumerate(zip(made, bills, strict=False), start)
    ]


def _bills(events: Sequence[AnyEvent], usage: Usage | None) -> list[Usage | None]:
    """One bill for each answer of the model, with the first event made from it."""
    answers = [getattr(event, "llm_response_id", None) for event in events]
    bills = [
        Usage() if answer is not None and answer not in answers[:nth] else None
        for nth, answer in enumerate(answers)
    ]
    return [usage or bills[0], *bills[1:]] if bills else []


def after(state: State, *events: AnyEvent, usage: Usage | None = None) -> State:
    """The state once these events have been appended."""
    return fold(state, digests(*events, start=state.next_seq, usage=usage))


def opening(spec: Spec = SPEC) -> State:
    """A conversation that has been opened and told who it is: its first three events."""
    return after(State(), opened(), configured(spec), prompt())


def text(*parts: str) -> tuple[TextContent, ...]:
    return tuple(TextContent(text=part) for part in parts)


def user(words: str = "Go on.", message_id: str | None = None) -> MessageEvent:
    said = Message(role="user", content=text(words))
    return MessageEvent(timestamp=WHEN, source="user", llm_message=said, message_id=message_id)


def agent(words: str = "Done.", response: str = "response-words") -> MessageEvent:
    said = Message(role="assistant", content=text(words))
    return MessageEvent(timestamp=WHEN, source="agent", llm_message=said, llm_response_id=response)


def partial(words: str = "I was ab") -> MessageEvent:
    """What the model had said when it was stopped."""
    said = Message(role="assistant", content=text(words))
    return MessageEvent(timestamp=WHEN, source="agent", llm_message=said, sender="interrupted")


def tool(name: str, repeatable: bool) -> ToolDefinition:
    hints = ToolAnnotations(readOnlyHint=repeatable)
    schema = {"type": "object", "properties": {}}
    return ToolDefinition(name=name, description=name, parameters=schema, annotations=hints)


def prompt() -> SystemPromptEvent:
    tools = tuple(tool(name, name in READERS) for name in ("look", "write", "finish"))
    return SystemPromptEvent(
        timestamp=WHEN, system_prompt=TextContent(text="Be careful."), tools=tools
    )


def call(name: str = "look", call_id: str = "call_1", arguments: str = "{}") -> MessageToolCall:
    return MessageToolCall(id=call_id, name=name, arguments=arguments)


def action(
    name: str = "look",
    call_id: str = "call_1",
    response: str = "response-1",
    arguments: str = "{}",
    valid: bool = True,
    touches: tuple[str, ...] | None = None,
    risk: Risk = "UNKNOWN",
) -> ActionEvent:
    """A call; one that is not `valid` could not be read."""
    return ActionEvent(
        timestamp=WHEN,
        action=understood(name, arguments) if valid else None,
        tool_name=name,
        tool_call_id=call_id,
        tool_call=call(name, call_id, arguments),
        llm_response_id=response,
        touches=touches,
        security_risk=risk,
    )


def understood(name: str, arguments: str = "{}") -> Action:
    if name == "finish":
        return FinishAction(message="All done.")
    return MCPToolAction(data=json.loads(arguments))


def observation(
    action_id: str, name: str = "look", words: str = "ok", call_id: str = "call_1"
) -> ObservationEvent:
    seen = (
        FinishObservation(content=text(words))
        if name == "finish"
        else MCPToolObservation(tool_name=name, content=text(words))
    )
    return ObservationEvent(
        timestamp=WHEN, action_id=action_id, tool_name=name, tool_call_id=call_id, observation=seen
    )


def error(
    action_id: str | None, name: str = "look", call_id: str = "call_1", words: str = "no such tool"
) -> AgentErrorEvent:
    return AgentErrorEvent(
        timestamp=WHEN,
        error=words,
        tool_name=name,
        tool_call_id=call_id,
        action_id=action_id,
        classification="tool_raised" if action_id else "unknown_tool",
    )


def rejection(action_id: str, name: str = "look", call_id: str = "call_1") -> UserRejectObservation:
    return UserRejectObservation(
        timestamp=WHEN,
        action_id=action_id,
        tool_name=name,
        tool_call_id=call_id,
        rejection_reason="not on a Friday",
    )


def assessed(risks: dict[str, Risk]) -> SecurityAnalysisEvent:
    return SecurityAnalysisEvent(timestamp=WHEN, analyzer="rules", policy="risky", risks=risks)


def overflow() -> CondensationRequest:
    """The prompt did not fit; a person asks for the same with `source` user."""
    return CondensationRequest(timestamp=WHEN)


def condensation(first: int, last: int, summary: str | None = None, size: int = 0) -> Condensation:
    """The events in these slots are forgotten; they took `size` tokens."""
    return Condensation(
        timestamp=WHEN,
        forgotten_event_ids=tuple(id_of(seq) for seq in range(first, last + 1)),
        forgotten_seqs=((first, last),),
        forgotten_size=size,
        summary=summary,
        summary_offset=None if summary is None else first,
    )


def opened(run: str = ORIGIN.run) -> ConversationStateUpdateEvent:
    return ConversationStateUpdateEvent(timestamp=WHEN, key="opened", value={"run_id": run})


def configured(spec: Spec = SPEC) -> ConversationStateUpdateEvent:
    value = spec.model_dump(mode="json", exclude_none=True)
    return ConversationStateUpdateEvent(timestamp=WHEN, key="spec", value=value)


def status(value: str) -> ConversationStateUpdateEvent:
    """`resumed` or `closed`, or `waiting_for_confirmation`."""
    return updated("status", value)


def updated(key: str, value: Any) -> ConversationStateUpdateEvent:
    return ConversationStateUpdateEvent(timestamp=WHEN, source="user", key=key, value=value)


def failed(code: str = "auth", detail: str = "Set a key.") -> ConversationErrorEvent:
    return ConversationErrorEvent(timestamp=WHEN, code=code, detail=detail)


def unknown(kind: str = "DreamEvent", **fields: Any) -> UnknownEvent:
    """An event of a newer writer."""
    made = event_from({"timestamp": WHEN, "source": "environment", "kind": kind, **fields})
    assert isinstance(made, UnknownEvent)
    return made


def completion(
    *calls: MessageToolCall, words: str = "", response: str = "response-1", **fields: Any
) -> Completion:
    said = Message(role="assistant", content=text(words), tool_calls=calls or None)
    return Completion(id=response, model="m", message=said, received=WHEN, **fields)


ONE_OF_EACH: list[AnyEvent] = [
    prompt(),
    user(message_id="m-1"),
    agent(),
    partial(),
    action("write", arguments='{"path": "a"}', touches=("file:a",)),
    assessed({id_of(4): "HIGH"}),
    observation(id_of(4), "write"),
    error(id_of(4), "write"),
    rejection(id_of(4), "write"),
    RecallEvent(timestamp=WHEN, recall_type="KNOWLEDGE", query="q", skills=("s",), content="c"),
    overflow(),
    condensation(1, 2, "In short."),
    PauseEvent(timestamp=WHEN),
    InterruptEvent(timestamp=WHEN),
    StuckEvent(timestamp=WHEN, pattern="monologue", first_seq=1, last_seq=3, count=3),
    opened(),
    configured(),
    status("closed"),
    failed(),
    unknown(sheep=1),
]
