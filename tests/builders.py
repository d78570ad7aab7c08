"""Builders of events, entries, summaries and states."""

import json
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID, uuid5

from perdure.agent.calls.completion import Completion
from perdure.agent.loop.evolve import fold
from perdure.agent.loop.state import State
from perdure.agent.policies import Limits
from perdure.agent.spec import Agent, ModelSpec
from perdure.events.actions import Action, FinishAction, MCPToolAction
from perdure.events.condensation import Condensation, CondensationRequest
from perdure.events.content import (
    Message,
    MessageToolCall,
    TextContent,
    ToolAnnotations,
    ToolDefinition,
)
from perdure.events.control import (
    ConversationErrorEvent,
    ConversationStateUpdateEvent,
    InterruptEvent,
    PauseEvent,
    SecurityAnalysisEvent,
    StuckEvent,
)
from perdure.events.entry import Entry, Origin, make_entry
from perdure.events.event import AnyEvent, UnknownEvent, parse_event
from perdure.events.messages import MessageEvent, RecallEvent, SystemPromptEvent
from perdure.events.observations import FinishObservation, MCPToolObservation
from perdure.events.projection import summarize
from perdure.events.risk import Risk
from perdure.events.summary import EventSummary
from perdure.events.tools import (
    ActionEvent,
    AgentErrorEvent,
    ObservationEvent,
    UserRejectObservation,
)
from perdure.events.usage import Usage
from perdure.events.waiting import QuestionEvent, SignalEvent, WaitEvent

TIMESTAMP = "2026-03-01T09:00:00.000000"
CONVERSATION = "0199a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b"
ORIGIN = Origin(run="0199a1b2-0000-7000-8000-000000000001", activity="7")
SPEC = Agent(model=ModelSpec(name="scripted:story.json"), limits=Limits(max_iterations=5))
READ_ONLY_TOOLS = ("look", "finish")
"""The repeatable tools of `prompt()`; `write` is not."""


def id_of(seq: int) -> str:
    """Return the id of the event in a slot."""
    return str(uuid5(UUID(CONVERSATION), str(seq)))


def with_ids(events: Iterable[AnyEvent], start: int = 0) -> list[AnyEvent]:
    """Give the events the ids of their slots, as a log does."""
    return [_placed(event, seq) for seq, event in enumerate(events, start)]


def lose_call(state: State, seq: int, detail: str) -> State:
    """The state where the call in slot `seq` was lost with an earlier workflow."""
    pending = tuple(
        call.model_copy(update={"outcome_unknown": detail}) if call.seq == seq else call
        for call in state.pending
    )
    return state.model_copy(update={"pending": pending})


def _placed(event: AnyEvent, seq: int) -> AnyEvent:
    if isinstance(event, UnknownEvent):
        return parse_event({**event.raw, "id": id_of(seq)})
    return event.model_copy(update={"id": id_of(seq)})


def entries(events: Iterable[AnyEvent], start: int = 0) -> list[Entry]:
    """Make the entries of the events, from slot `start` on."""
    return [
        make_entry(seq, event, ORIGIN) for seq, event in enumerate(with_ids(events, start), start)
    ]


def summaries_of(
    *events: AnyEvent, start: int = 0, usage: Usage | None = None
) -> list[EventSummary]:
    """Return the summaries that activities return; `usage` belongs to the first event."""
    made = with_ids(events, start)
    bills = _bills(made, usage)
    return [
        summarize(make_entry(seq, event, ORIGIN, bill))
        for seq, (event, bill) in enumerate(zip(made, bills, strict=False), start)
    ]


def _bills(events: Sequence[AnyEvent], usage: Usage | None) -> list[Usage | None]:
    """Return one usage for each response of the model, at its first event."""
    answers = [getattr(event, "llm_response_id", None) for event in events]
    bills = [
        Usage() if answer is not None and answer not in answers[:nth] else None
        for nth, answer in enumerate(answers)
    ]
    return [usage or bills[0], *bills[1:]] if bills else []


def apply_events(state: State, *events: AnyEvent, usage: Usage | None = None) -> State:
    """Return the state once these events are appended."""
    return fold(state, summaries_of(*events, start=state.next_seq, usage=usage))


def state_fields(state: State) -> dict[str, Any]:
    """Return the JSON of a state in which recent events have the names of their fields."""
    fields: dict[str, Any] = json.loads(state.model_dump_json())
    fields["recent_events"] = [dict(event) for event in state.recent_events]
    return fields


def opened_state(spec: Agent = SPEC) -> State:
    """Return an opened conversation with its system prompt: its first three events."""
    return apply_events(State(), opened_event(), spec_event(spec), prompt())


def text(*parts: str) -> tuple[TextContent, ...]:
    return tuple(TextContent(text=part) for part in parts)


def user(words: str = "Go on.", message_id: str | None = None) -> MessageEvent:
    message = Message(role="user", content=text(words))
    return MessageEvent(
        timestamp=TIMESTAMP, source="user", llm_message=message, message_id=message_id
    )


def agent(words: str = "Done.", response: str = "response-words") -> MessageEvent:
    message = Message(role="assistant", content=text(words))
    return MessageEvent(
        timestamp=TIMESTAMP, source="agent", llm_message=message, llm_response_id=response
    )


def partial_message(words: str = "I was ab") -> MessageEvent:
    """Make the message of a response that was stopped."""
    message = Message(role="assistant", content=text(words))
    return MessageEvent(
        timestamp=TIMESTAMP, source="agent", llm_message=message, sender="interrupted"
    )


def tool(name: str, repeatable: bool) -> ToolDefinition:
    hints = ToolAnnotations(readOnlyHint=repeatable)
    schema = {"type": "object", "properties": {}}
    return ToolDefinition(name=name, description=name, parameters=schema, annotations=hints)


def prompt() -> SystemPromptEvent:
    tools = tuple(tool(name, name in READ_ONLY_TOOLS) for name in ("look", "write", "finish"))
    return SystemPromptEvent(
        timestamp=TIMESTAMP, system_prompt=TextContent(text="Be careful."), tools=tools
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
    """Make a call; an invalid one could not be parsed."""
    return ActionEvent(
        timestamp=TIMESTAMP,
        action=parsed_action(name, arguments) if valid else None,
        tool_name=name,
        tool_call_id=call_id,
        tool_call=call(name, call_id, arguments),
        llm_response_id=response,
        touches=touches,
        security_risk=risk,
    )


def parsed_action(name: str, arguments: str = "{}") -> Action:
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
        timestamp=TIMESTAMP,
        action_id=action_id,
        tool_name=name,
        tool_call_id=call_id,
        observation=seen,
    )


def error(
    action_id: str | None, name: str = "look", call_id: str = "call_1", words: str = "no such tool"
) -> AgentErrorEvent:
    return AgentErrorEvent(
        timestamp=TIMESTAMP,
        error=words,
        tool_name=name,
        tool_call_id=call_id,
        action_id=action_id,
        classification="tool_raised" if action_id else "unknown_tool",
    )


def rejection(action_id: str, name: str = "look", call_id: str = "call_1") -> UserRejectObservation:
    return UserRejectObservation(
        timestamp=TIMESTAMP,
        action_id=action_id,
        tool_name=name,
        tool_call_id=call_id,
        rejection_reason="not on a Friday",
    )


def risk_analysis(risks: dict[str, Risk]) -> SecurityAnalysisEvent:
    return SecurityAnalysisEvent(timestamp=TIMESTAMP, analyzer="rules", policy="risky", risks=risks)


def overflow() -> CondensationRequest:
    """Make the event for a prompt that was too long; a user's request has another `source`."""
    return CondensationRequest(timestamp=TIMESTAMP)


def condensation(first: int, last: int, summary: str | None = None, size: int = 0) -> Condensation:
    """Make the event that forgets these slots, of `size` tokens."""
    return Condensation(
        timestamp=TIMESTAMP,
        forgotten_event_ids=tuple(id_of(seq) for seq in range(first, last + 1)),
        forgotten_seqs=((first, last),),
        forgotten_size=size,
        summary=summary,
        summary_offset=None if summary is None else first,
    )


def opened_event(run: str = ORIGIN.run) -> ConversationStateUpdateEvent:
    return ConversationStateUpdateEvent(timestamp=TIMESTAMP, key="opened", value={"run_id": run})


def spec_event(spec: Agent = SPEC) -> ConversationStateUpdateEvent:
    value = spec.model_dump(mode="json", exclude_none=True)
    return ConversationStateUpdateEvent(timestamp=TIMESTAMP, key="spec", value=value)


def status_event(value: str) -> ConversationStateUpdateEvent:
    """`resumed` or `closed`, or `waiting_for_confirmation`."""
    return state_update("status", value)


def state_update(key: str, value: Any) -> ConversationStateUpdateEvent:
    return ConversationStateUpdateEvent(timestamp=TIMESTAMP, source="user", key=key, value=value)


def error_event(code: str = "auth", detail: str = "Set a key.") -> ConversationErrorEvent:
    return ConversationErrorEvent(timestamp=TIMESTAMP, code=code, detail=detail)


def unknown_event(kind: str = "DreamEvent", **fields: Any) -> UnknownEvent:
    """Make an event of a newer writer."""
    made = parse_event({"timestamp": TIMESTAMP, "source": "environment", "kind": kind, **fields})
    assert isinstance(made, UnknownEvent)
    return made


def completion(
    *calls: MessageToolCall, words: str = "", response: str = "response-1", **fields: Any
) -> Completion:
    message = Message(role="assistant", content=text(words), tool_calls=calls or None)
    return Completion(id=response, model="m", message=message, received=TIMESTAMP, **fields)


SUSPENSION = InterruptEvent(
    timestamp=TIMESTAMP, source="environment", reason="too_many_conversations"
)

EVENT_OF_EACH_KIND: list[AnyEvent] = [
    prompt(),
    user(message_id="m-1"),
    agent(),
    partial_message(),
    action("write", arguments='{"path": "a"}', touches=("file:a",)),
    risk_analysis({id_of(4): "HIGH"}),
    observation(id_of(4), "write"),
    error(id_of(4), "write"),
    rejection(id_of(4), "write"),
    RecallEvent(
        timestamp=TIMESTAMP, recall_type="KNOWLEDGE", query="q", skills=("s",), content="c"
    ),
    overflow(),
    condensation(1, 2, "In short."),
    PauseEvent(timestamp=TIMESTAMP),
    InterruptEvent(timestamp=TIMESTAMP),
    SUSPENSION,
    StuckEvent(timestamp=TIMESTAMP, pattern="monologue", first_seq=1, last_seq=3, count=3),
    opened_event(),
    spec_event(),
    status_event("closed"),
    error_event(),
    WaitEvent(timestamp=TIMESTAMP, action_id="a", tool_call_id="c", signal="paid"),
    QuestionEvent(timestamp=TIMESTAMP, action_id="a", tool_call_id="c", question="Which?"),
    SignalEvent(timestamp=TIMESTAMP, name="paid", data={"amount": 12}),
    unknown_event(sheep=1),
]
