"""The spans of a step and of a turn: pure functions of what is known of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

from perdure.events.entry import Entry
from perdure.events.messages import MessageEvent
from perdure.events.tools import AgentErrorEvent, ObservationEvent
from perdure.events.usage import Usage
from perdure.storage.keys import event_key
from perdure.telemetry import mcp, names
from perdure.telemetry.identity import SpanPlace, parse_traceparent, part_place, turn_place
from perdure.telemetry.record import Append, ModelCall, StepRecord
from perdure.telemetry.turns import EndedTurn
from perdure.tools.mcp.call_trace import CallTrace

ANSWERS = (ObservationEvent, AgentErrorEvent)

UNKNOWN_PROVIDER = "unknown"


@dataclass(frozen=True)
class Span:
    """A span that has ended, with moments in nanoseconds; `error` is the type of its failure."""

    name: str
    place: SpanPlace
    begin: int
    end: int
    attributes: Mapping[str, Any]
    parent: SpanPlace | None = None
    link: SpanPlace | None = None
    kind: Literal["internal", "client", "server"] = "internal"
    error: str | None = None
    entry: Entry | None = None
    """The event that the span is of, for its content."""
    call: ModelCall | None = None


@dataclass(frozen=True)
class StepContext:
    """The fields that all spans of an attempt at a step have in common."""

    turn: SpanPlace
    user_id: str
    conversation_id: str
    turn_number: int
    prefix: str
    """The prefix of the log's keys in the store."""
    attempt: int = 1
    record: StepRecord = field(default_factory=lambda: StepRecord(0))
    end: int = 0

    def base(self, operation: str | None, **more: Any) -> dict[str, Any]:
        """Return the attributes of a span; `operation` is one that the conventions know."""
        named = {} if operation is None else {names.OPERATION: operation}
        return {
            **named,
            names.CONVERSATION_ID: self.conversation_id,
            names.USER_ID: self.user_id,
            names.TURN: self.turn_number,
            **more,
        }


def find_provider(model: str) -> str:
    """Return who has a model: what stands before the first `/` or `:` of its name."""
    for mark in ("/", ":"):
        head, found, _ = model.partition(mark)
        if found and head.replace("_", "").replace("-", "").isalnum():
            return head
    return UNKNOWN_PROVIDER


def model_label(model: str) -> str:
    """Return a name of few values for a model: that of a script has a path of its own."""
    head, colon, _ = model.partition(":")
    return head if colon and head in ("scripted", "replay") else model


def moment_of(timestamp: str) -> int:
    """Return an event's timestamp in nanoseconds."""
    at = datetime.fromisoformat(timestamp).replace(tzinfo=UTC)  # strptime takes 20 times the CPU
    return int(at.timestamp() * 1_000_000) * 1000


def chat_spans(context: StepContext, entries: Sequence[Entry]) -> Iterator[Span]:
    """Yield the span of each response of the model that a step has recorded, or found.

    It ends as the response was received, which is the timestamp of its events: those end the turn.
    """
    for entry in entries:
        usage = entry.usage
        response = getattr(entry.event, "llm_response_id", None)
        if usage is None or response is None:
            continue
        call = _find_call(context.record, response)
        end = moment_of(entry.event.timestamp)
        attributes = {**_model_attributes(usage, call), names.RESPONSE_ID: response}
        span = _chat_span(
            context,
            f"chat {entry.seq}",
            usage.model,
            (min(call.begin, end) if call else end - int(usage.latency * 1e9), end),
            {**attributes, **_event_attributes(context, entry, restored=call is None)},
        )
        yield replace(span, entry=entry, call=call)


def failed_chat_spans(context: StepContext, base: int) -> Iterator[Span]:
    """Yield the span of each request of an attempt that a model has not answered."""
    for nth, call in enumerate(context.record.calls):
        if call.error is not None:
            part = f"chat {base} failed {context.attempt} {nth}"
            span = _chat_span(context, part, call.request.model.name, (call.begin, call.end), {})
            yield replace(span, error=call.error)


def purposeful_chat_spans(context: StepContext, base: int) -> Iterator[Span]:
    """Yield the span of each answer of a model to something else than the next step."""
    for nth, call in enumerate(context.record.calls):
        if call.completion is not None:
            usage = call.completion.usage
            attributes = {
                **_model_attributes(usage, call),
                names.RESPONSE_ID: call.completion.id,
                names.PURPOSE: call.request.purpose,
            }
            part = f"chat {call.request.purpose} {base} {nth}"
            yield _chat_span(context, part, usage.model, (call.begin, call.end), attributes)


def _chat_span(
    context: StepContext,
    part: str,
    model: str,
    moments: tuple[int, int],
    attributes: Mapping[str, Any],
) -> Span:
    label = model_label(model)
    base = context.base(
        names.CHAT, **{names.REQUEST_MODEL: label, names.PROVIDER: find_provider(model)}
    )
    return Span(
        f"{names.CHAT} {label}",
        part_place(context.turn, part),
        *moments,
        {**base, **attributes},
        parent=context.turn,
        kind="client",
    )


def call_place(turn: SpanPlace, action_id: str) -> SpanPlace:
    """Return the place of the span of a tool's call."""
    return part_place(turn, f"tool {action_id}")


def tool_spans(
    context: StepContext, entries: Sequence[Entry], call_moment: int | None = None
) -> Iterator[Span]:
    """Yield the span of each call that a step has answered, or found answered.

    One that was made elsewhere, in another conversation or attempt, was asked for at `call_moment`.
    """
    for entry in entries:
        event = entry.event
        if not isinstance(event, ANSWERS) or event.action_id is None:
            continue
        answered = moment_of(event.timestamp)
        restored = answered < context.record.begin
        begin = context.record.begin if call_moment is None else call_moment
        at_server = mcp.call_attributes(context.record.mcp)
        attributes = context.base(
            names.EXECUTE_TOOL,
            **{
                names.TOOL_NAME: event.tool_name,
                names.TOOL_TYPE: "function",
                names.TOOL_CALL_ID: event.tool_call_id,
                **at_server,
                **_event_attributes(context, entry, restored),
            },
        )
        yield Span(
            f"{names.EXECUTE_TOOL} {event.tool_name}",
            call_place(context.turn, event.action_id),
            min(begin, answered),
            answered,
            attributes,
            parent=context.turn,
            kind="client" if at_server else "internal",
            error=_tool_error(event, context.record.mcp),
            entry=entry,
        )


def _tool_error(event: ObservationEvent | AgentErrorEvent, trace: CallTrace | None) -> str | None:
    if isinstance(event, AgentErrorEvent):
        code = trace.error_code if trace else None
        return event.classification if code is None else str(code)
    return "tool_error" if event.observation.is_error else None


def condense_span(context: StepContext, entries: Sequence[Entry]) -> Span | None:
    """Return the span of a step that condensed the view; None if it has written nothing."""
    if not entries:
        return None
    usages = [entry.usage for entry in entries if entry.usage is not None]
    tokens = _model_attributes(sum(usages[1:], usages[0]), None) if usages else {}
    attributes = {**tokens, **_event_attributes(context, entries[0], restored=False)}
    failed = [entry.event for entry in entries if entry.event.kind == "ConversationErrorEvent"]
    return Span(
        names.CONDENSE,
        part_place(context.turn, f"condense {entries[0].seq}"),
        context.record.begin,
        context.end,
        context.base(None, **attributes),
        parent=context.turn,
        error=getattr(failed[0], "code", None) if failed else None,
    )


def append_span(context: StepContext, append: Append) -> Span:
    """Return the span of an event that was written."""
    return Span(
        names.STORAGE_APPEND,
        part_place(context.turn, f"append {append.key}"),
        append.begin,
        append.end,
        context.base(None, **{names.EVENT_KEY: append.key}),
        parent=context.turn,
        kind="client",
    )


def turn_span(
    user_id: str, conversation_id: str, ended: EndedTurn, first: Entry, last: Entry
) -> Span:
    """Return the span of a turn that is over, whose message may name the span it was sent from."""
    message = first.event
    link = None
    if isinstance(message, MessageEvent) and message.traceparent is not None:
        link = parse_traceparent(message.traceparent)
    attributes = {
        names.OPERATION: names.INVOKE_AGENT,
        names.CONVERSATION_ID: conversation_id,
        names.USER_ID: user_id,
        names.TURN: ended.turn,
        names.STATUS: ended.status,
        names.PROVIDER: find_provider(ended.model),
        names.REQUEST_MODEL: model_label(ended.model),
    }
    if ended.agent is not None:
        attributes[names.AGENT_NAME] = ended.agent
    begin = moment_of(message.timestamp)
    return Span(
        f"{names.INVOKE_AGENT} {ended.agent}" if ended.agent else names.INVOKE_AGENT,
        turn_place(conversation_id, ended.turn),
        begin,
        max(begin, moment_of(last.event.timestamp)),
        attributes,
        link=link,
        error=ended.error,
    )


def _find_call(record: StepRecord, response_id: str) -> ModelCall | None:
    calls = (call for call in record.calls if call.completion is not None)
    return next((call for call in calls if call.completion.id == response_id), None)  # type: ignore[union-attr]


def _model_attributes(usage: Usage, call: ModelCall | None) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        names.RESPONSE_MODEL: model_label(usage.served_model or usage.model),
        names.INPUT_TOKENS: usage.prompt_tokens,
        names.OUTPUT_TOKENS: usage.completion_tokens,
        names.CACHE_READ_TOKENS: usage.cached_tokens or None,
        names.CACHE_WRITE_TOKENS: usage.cache_write_tokens or None,
        names.REASONING_TOKENS: usage.reasoning_tokens or None,
        names.COST: usage.known_cost,
    }
    if call is not None:
        if call.completion is not None and call.completion.finish_reason:
            attributes[names.FINISH_REASONS] = (call.completion.finish_reason,)
        if call.first_text is not None:
            attributes[names.TIME_TO_FIRST_CHUNK] = (call.first_text - call.begin) / 1e9
    return {name: value for name, value in attributes.items() if value is not None}


def _event_attributes(context: StepContext, entry: Entry, restored: bool) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        names.EVENT_KEY: context.prefix + event_key(context.conversation_id, entry.seq)
    }
    if context.attempt > 1:
        attributes[names.ATTEMPT] = context.attempt
    return attributes | ({names.RESTORED: True} if restored else {})
