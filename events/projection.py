"""From an entry to its digest, its fingerprint and its size."""

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from events.actions import FileEditorAction, TerminalAction
from events.condensation import Condensation
from events.content import ImageContent, Message, TextContent, text_of
from events.control import (
    ConversationErrorEvent,
    ConversationStateUpdateEvent,
    SecurityAnalysisEvent,
    StuckEvent,
)
from events.digest import Digest
from events.entry import Entry
from events.event import AnyEvent, UnknownEvent
from events.messages import MessageEvent, RecallEvent, SystemPromptEvent
from events.tools import ActionEvent, AgentErrorEvent, ObservationEvent, UserRejectObservation
from events.usage import Usage

NAME = 128
"""Bytes of a name or an id: what is longer is cut, and stays different from all others."""

DETAIL = 500
"""Characters that are kept of an error's detail."""

DECISIVE = ("opened", "spec", "status", "confirmed")
"""The state updates whose value something is decided by."""

IMAGE = 1000
"""Tokens that an image takes, about, whatever its bytes."""

HEADLINE = 40
"""Characters of a command that an operator sees beside its step: what fits into the UI's column."""

TITLE = 120
"""Characters of a title that are kept."""

MOST_TOUCHED = 8
"""Things that an action touches; of one that touches more, nothing is known."""


def digest(entry: Entry) -> Digest:
    event = entry.event
    return Digest(
        seq=entry.seq,
        kind=_name(event.kind),
        source=_name(event.source),
        fingerprint=fingerprint(event),
        size=size(entry),
        sha=entry.sha,
        usage=_billed(entry.usage),
        home=entry.files.home if entry.files else None,
        **_details(event),
    )


def _billed(usage: Usage | None) -> Usage | None:
    """The bill without what takes room and decides nothing: a model's provider, microseconds."""
    if usage is None:
        return None
    model = _name(usage.model.rpartition("/")[2])
    return usage.model_copy(update={"model": model, "latency": round(usage.latency, 3)})


def _details(event: AnyEvent) -> dict[str, Any]:
    match event:
        case ActionEvent():
            return _asked(event)
        case ObservationEvent():
            failed = event.observation.is_error
            return _answer(event) | ({"is_error": True} if failed else {})
        case AgentErrorEvent():
            return _answer(event) | {"is_error": True}
        case UserRejectObservation():
            return _answer(event)
        case MessageEvent():
            return _said_by(event)
        case SystemPromptEvent():
            return _traits(event)
        case SecurityAnalysisEvent():
            return {"value": {_name(action): risk for action, risk in event.risks.items()}}
        case RecallEvent():
            return {"value": [_name(skill) for skill in event.skills]}
        case StuckEvent():
            told = f"events {event.first_seq} to {event.last_seq}"
            return {"key": _name(event.pattern), "value": told}
        case Condensation():
            return {"value": _forgotten(event)}
        case ConversationStateUpdateEvent():
            return {"key": _name(event.key), "value": _brief(event)}
        case ConversationErrorEvent():
            detail = event.detail
            cut = detail if len(detail) <= DETAIL else f"{detail[: DETAIL - 1]}…"
            return {"key": _name(event.code), "value": cut, "is_error": True}
        case UnknownEvent():
            return _legible(event)
        case _:
            return {}


def _asked(event: ActionEvent) -> dict[str, Any]:
    risk = event.security_risk
    return {
        "tool_name": _name(event.tool_name),
        "tool_call_id": _name(event.tool_call_id),
        "action_id": _name(event.id),
        # One answer of the model is told from another by it, and by nothing else.
        "llm_response_id": hashlib.sha256(event.llm_response_id.encode()).hexdigest()[:12],
        "risk": None if risk == "UNKNOWN" else risk,
        "is_error": True if event.action is None else None,
        "touches": _touches(event),
        "headline": _headline(event),
    }


def _headline(event: ActionEvent) -> str | None:
    match event.action:
        case TerminalAction(command=command):
            words = command
        case FileEditorAction(command=command, path=path):
            words = f"{command} {path}"
        case _:
            return None
    line = words.strip().partition("\n")[0]
    return line if len(line) <= HEADLINE else f"{line[: HEADLINE - 1]}…"


def _said_by(event: MessageEvent) -> dict[str, Any]:
    ids = {"message_id": event.message_id, "llm_response_id": event.llm_response_id}
    # Of what the system says, it counts which part of it speaks.
    if event.source != "user":
        ids["key"] = event.sender
    return {key: _name(value) for key, value in ids.items() if value is not None}


def _touches(event: ActionEvent) -> tuple[str, ...] | None:
    if event.touches is None or len(event.touches) > MOST_TOUCHED:
        return None
    return tuple(hashlib.sha256(one.encode()).hexdigest()[:16] for one in event.touches)


def _traits(event: SystemPromptEvent) -> dict[str, Any]:
    tools = event.tools
    return {
        "repeatable": tuple(tool.name for tool in tools if tool.annotations.repeatable),
        "read_only": tuple(tool.name for tool in tools if tool.annotations.readOnlyHint) or None,
        "waits": tuple(tool.name for tool in tools if tool.waits) or None,
    }


def _forgotten(event: Condensation) -> dict[str, Any]:
    return {
        "count": len(event.forgotten_event_ids),
        "forgotten": [list(one) for one in event.forgotten_seqs or ()],
        "size": event.forgotten_size or 0,
        "summary": 0 if event.summary is None else event.summary_size or 1,
    }


def _brief(event: ConversationStateUpdateEvent) -> Any:
    """What is decided by: of a spec all but its prompt, of most other updates nothing."""
    if event.key == "title":
        return str(event.value)[:TITLE]
    if event.key == "opened":  # which sandbox there is decides nothing
        return {"run_id": event.value["run_id"]}
    if event.key != "spec":
        return event.value if event.key in DECISIVE else None
    return {name: value for name, value in event.value.items() if name != "system_prompt"}


def _answer(event: ObservationEvent | AgentErrorEvent | UserRejectObservation) -> dict[str, Any]:
    return {
        "tool_name": _name(event.tool_name),
        "action_id": None if event.action_id is None else _name(event.action_id),
    }


def _legible(event: UnknownEvent) -> dict[str, Any]:
    """What a newer writer's event still tells: which action it answers, which answer it is of.

    An action that cannot be read cannot be run here.
    """
    names = ("tool_name", "tool_call_id", "action_id", "llm_response_id", "message_id")
    told: dict[str, Any] = {
        key: _name(event.raw[key]) for key in names if isinstance(event.raw.get(key), str)
    }
    if event.kind == "ActionEvent":
        return told | {"action_id": _name(event.id), "is_error": True}
    return told


def _name(text: str) -> str:
    """The name itself, or where it is too long its beginning and a hash of all of it."""
    encoded = text.encode()
    if len(encoded) <= NAME:
        return text
    return f"{encoded[:60].decode(errors='ignore')}…{hashlib.sha256(encoded).hexdigest()[:16]}"


def fingerprint(event: AnyEvent) -> str:
    """A hash of what stuck detection compares: never an id, never a time."""
    canonical = json.dumps(_said(event), sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def _said(event: AnyEvent) -> list[Any]:
    match event:
        case ActionEvent():
            thought = text_of(event.thought)
            # A call that could not be validated has only its raw text to be told by.
            done = event.action.model_dump() if event.action else event.tool_call.arguments
            return [event.kind, event.source, thought, done, event.tool_name]
        case ObservationEvent():
            # The number of a process is an id too.
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


def size(entry: Entry) -> int:
    """Tokens, roughly: four bytes of the stored object to a token, and so many to an image."""
    images = [url for part in _parts(entry.event) for url in _images(part)]
    return (len(entry.body) - sum(map(len, images))) // 4 + IMAGE * len(images)


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
