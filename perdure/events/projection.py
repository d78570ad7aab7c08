"""The summary of an entry, its fingerprint and its tokens."""

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from perdure.events.actions import FileEditorAction, TerminalAction
from perdure.events.base import shorten_name
from perdure.events.content import ImageContent, Message, TextContent, join_text
from perdure.events.control import ConversationStateUpdateEvent
from perdure.events.entry import Entry
from perdure.events.event import AnyEvent, UnknownEvent
from perdure.events.messages import MessageEvent, SystemPromptEvent
from perdure.events.summary import EventSummary
from perdure.events.tools import (
    ActionEvent,
    AgentErrorEvent,
    ObservationEvent,
    UserRejectObservation,
)
from perdure.events.usage import Usage

DECISIVE_UPDATES = ("opened", "spec", "status", "confirmed")
"""The state updates whose values decisions depend on."""

TOKENS_PER_IMAGE = 1000
"""Estimated tokens of an image of any size."""

MAX_PREVIEW_CHARS = 40
"""Characters of a command beside its step, as wide as the column in Temporal's UI."""

MAX_KEPT_TITLE_CHARS = 120
"""Characters of a title."""

MAX_RESOURCES = 8
"""Resources of an action; those of an action with more count as unknown."""


def summarize(entry: Entry) -> EventSummary:
    event = entry.event
    return EventSummary(
        seq=entry.seq,
        kind=shorten_name(event.kind),
        source=shorten_name(event.source),
        fingerprint=compute_fingerprint(event),
        tokens=estimate_tokens(entry),
        sha=entry.sha,
        usage=_shrink_usage(entry.usage),
        home=entry.files.home if entry.files else None,
        **_kind_fields(event),
    )


def _shrink_usage(usage: Usage | None) -> Usage | None:
    """Drop what takes room and decides nothing: a model's provider, microseconds."""
    if usage is None:
        return None
    model = shorten_name(usage.model.rpartition("/")[2])
    return usage.model_copy(update={"model": model, "latency": round(usage.latency, 3)})


def _kind_fields(event: AnyEvent) -> dict[str, Any]:
    match event:
        case ActionEvent():
            return _action_fields(event)
        case ObservationEvent():
            failed = event.observation.is_error
            return _result_fields(event) | ({"is_error": True} if failed else {})
        case AgentErrorEvent():
            return _result_fields(event) | {"is_error": True}
        case UserRejectObservation():
            return _result_fields(event)
        case MessageEvent():
            return _message_fields(event)
        case SystemPromptEvent():
            return _prompt_fields(event)
        case ConversationStateUpdateEvent():
            return {"key": shorten_name(event.key), "value": _update_value(event)}
        case UnknownEvent():
            return _unknown_fields(event)
        case _:
            return event.summary_fields()


def _action_fields(event: ActionEvent) -> dict[str, Any]:
    risk = event.security_risk
    return {
        "tool_name": shorten_name(event.tool_name),
        "tool_call_id": shorten_name(event.tool_call_id),
        "action_id": shorten_name(event.id),
        # The hash distinguishes the responses of the model; nothing else needs the id.
        "llm_response_id": hashlib.sha256(event.llm_response_id.encode()).hexdigest()[:12],
        "risk": None if risk == "UNKNOWN" else risk,
        "is_error": True if event.action is None else None,
        "resources": _resource_hashes(event),
        "preview": _preview(event),
    }


def _preview(event: ActionEvent) -> str | None:
    match event.action:
        case TerminalAction(command=command):
            text = command
        case FileEditorAction(command=command, path=path):
            text = f"{command} {path}"
        case _:
            return None
    line = text.strip().partition("\n")[0]
    return line if len(line) <= MAX_PREVIEW_CHARS else f"{line[: MAX_PREVIEW_CHARS - 1]}…"


def _message_fields(event: MessageEvent) -> dict[str, Any]:
    ids = {"message_id": event.message_id, "llm_response_id": event.llm_response_id}
    # The topic of a warning.
    if event.source != "user":
        ids["key"] = event.sender
    return {key: shorten_name(value) for key, value in ids.items() if value is not None}


def _resource_hashes(event: ActionEvent) -> tuple[str, ...] | None:
    if event.touches is None or len(event.touches) > MAX_RESOURCES:
        return None
    return tuple(hashlib.sha256(resource.encode()).hexdigest()[:16] for resource in event.touches)


def _prompt_fields(event: SystemPromptEvent) -> dict[str, Any]:
    tools = event.tools
    return {
        "repeatable": tuple(tool.name for tool in tools if tool.annotations.repeatable),
        "read_only": tuple(tool.name for tool in tools if tool.annotations.readOnlyHint) or None,
        "polling": tuple(tool.name for tool in tools if tool.waits) or None,
    }


def _update_value(event: ConversationStateUpdateEvent) -> Any:
    """Return the values that decisions depend on: of a spec all but its prompt."""
    if event.key == "title":
        return str(event.value)[:MAX_KEPT_TITLE_CHARS]
    if event.key == "opened":  # the sandbox decides nothing
        return {name: event.value[name] for name in ("run_id", "resumed") if name in event.value}
    if event.key != "spec":
        return event.value if event.key in DECISIVE_UPDATES else None
    return {name: value for name, value in event.value.items() if name != "system_prompt"}


def _result_fields(
    event: ObservationEvent | AgentErrorEvent | UserRejectObservation,
) -> dict[str, Any]:
    return {
        "tool_name": shorten_name(event.tool_name),
        "action_id": None if event.action_id is None else shorten_name(event.action_id),
    }


def _unknown_fields(event: UnknownEvent) -> dict[str, Any]:
    """Return the ids that a newer writer's event has: of its action, its response.

    An action that cannot be read cannot be run here.
    """
    names = ("tool_name", "tool_call_id", "action_id", "llm_response_id", "message_id")
    fields: dict[str, Any] = {
        key: shorten_name(event.raw[key]) for key in names if isinstance(event.raw.get(key), str)
    }
    if event.kind == "ActionEvent":
        return fields | {"action_id": shorten_name(event.id), "is_error": True}
    return fields


def compute_fingerprint(event: AnyEvent) -> str:
    """Hash what stuck detection compares: no ids and no times."""
    canonical = json.dumps(
        _fingerprint_fields(event), sort_keys=True, separators=(",", ":"), default=str
    )
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def _fingerprint_fields(event: AnyEvent) -> list[Any]:
    match event:
        case ActionEvent():
            thought = join_text(event.thought)
            # An invalid call has only its raw text.
            done = event.action.model_dump() if event.action else event.tool_call.arguments
            return [event.kind, event.source, thought, done, event.tool_name]
        case ObservationEvent():
            # A process number is an id too.
            seen = event.observation.model_dump(exclude={"metadata": {"pid"}})
            return [event.kind, event.source, seen, event.tool_name]
        case AgentErrorEvent():
            return [event.kind, event.error]
        case UserRejectObservation():
            return [event.kind, event.source, event.rejection_reason, event.tool_name]
        case MessageEvent():
            return [event.kind, event.source, _content(event.llm_message)]
        case UnknownEvent():
            raw = {key: event.raw[key] for key in event.raw.keys() - {"id", "timestamp"}}
            return [event.kind, raw]
        case _:
            return [event.kind, event.model_dump(exclude={"id", "timestamp"})]


def _content(message: Message) -> list[Any]:
    return [part.model_dump() for part in message.content]


def estimate_tokens(entry: Entry) -> int:
    """Estimate tokens: four bytes of the stored object each, and `TOKENS_PER_IMAGE` an image."""
    images = [url for part in _parts(entry.event) for url in _images(part)]
    return (len(entry.body) - sum(map(len, images))) // 4 + TOKENS_PER_IMAGE * len(images)


def _parts(event: AnyEvent) -> Iterable[TextContent | ImageContent]:
    match event:
        case MessageEvent():
            return event.llm_message.content
        case ObservationEvent():
            return event.observation.content
        case _:
            return ()


def _images(part: TextContent | ImageContent) -> tuple[str, ...]:
    return part.image_urls if isinstance(part, ImageContent) else ()
