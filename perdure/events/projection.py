"""The summary of an entry, its fingerprint and its tokens."""

import json
from typing import Any

from perdure.events import tools
from perdure.events.base import hash_text, shorten_name
from perdure.events.content import Content, ImageContent, join_text
from perdure.events.control import InterruptEvent
from perdure.events.entry import Entry
from perdure.events.event import AnyEvent, UnknownEvent
from perdure.events.messages import MessageEvent
from perdure.events.summary import EventSummary
from perdure.events.usage import Usage
from perdure.events.waiting import QuestionEvent, WaitEvent

# `json.dumps` would make one for each event.
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=str)

SHARED_PREFIXES = ("user:", "app:")
"""The beginnings of keys whose values are shared: no log has those."""

UNCOMPARED = {"id", "timestamp", "actor", "status_detail", "traceparent"}
"""Fields that say nothing of what happened: an id, a time, a person, a span, a status as told."""

CALL_IDS = {"action_id", "tool_call_id"}

TOKENS_PER_IMAGE = 1000  # an estimate for every size


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
        state_keys=_own_state_keys(event),
        **event.summary_fields(),
    )


def _own_state_keys(event: AnyEvent) -> dict[str, bool] | None:
    changes = event.state_changes()
    own = {key: changes[key] is not None for key in changes if not key.startswith(SHARED_PREFIXES)}
    return own or None


def _shrink_usage(usage: Usage | None) -> Usage | None:
    """Drop what takes room and decides nothing: a model's provider, microseconds."""
    if usage is None:
        return None
    model = shorten_name(usage.model.rpartition("/")[2])
    shorter = {"model": model, "served_model": "", "latency": round(usage.latency, 3)}
    return usage.model_copy(update=shorter)


def compute_fingerprint(event: AnyEvent) -> str:
    """Hash what stuck detection compares: no ids and no times."""
    return hash_text(_CANONICAL.encode(_fingerprint_fields(event)))


def _fingerprint_fields(event: AnyEvent) -> list[Any]:
    match event:
        case tools.ActionEvent():
            thought = join_text(event.thought)
            # An invalid call has only its raw text.
            done = event.action.model_dump() if event.action else event.tool_call.arguments
            return [event.kind, event.source, thought, done, event.tool_name]
        case tools.ObservationEvent():
            # A process number is an id too.
            seen = event.observation.model_dump(exclude={"metadata": {"pid"}})
            return [event.kind, event.source, seen, event.tool_name]
        case tools.AgentErrorEvent():
            return [event.kind, event.error]
        case tools.UserRejectObservation():
            return [event.kind, event.source, event.rejection_reason, event.tool_name]
        case MessageEvent():
            content = [part.model_dump() for part in event.llm_message.content]
            return [event.kind, event.source, content]
        case InterruptEvent():  # without a reason it has the hash of before there were any
            named = event.model_dump(exclude=UNCOMPARED, exclude_none=True)
            return [event.kind, named]
        case WaitEvent() | QuestionEvent():
            return [event.kind, event.model_dump(exclude=UNCOMPARED | CALL_IDS)]
        case UnknownEvent():
            raw = {key: event.raw[key] for key in event.raw.keys() - {"id", "timestamp"}}
            return [event.kind, raw]
        case _:
            return [event.kind, event.model_dump(exclude=UNCOMPARED)]


def estimate_tokens(entry: Entry) -> int:
    """Estimate tokens: four bytes of the stored object each, and `TOKENS_PER_IMAGE` an image."""
    event = entry.event
    content: tuple[Content, ...] = ()
    if isinstance(event, MessageEvent):
        content = event.llm_message.content
    elif isinstance(event, tools.ObservationEvent):
        content = event.observation.content
    parts = (part for part in content if isinstance(part, ImageContent))
    images = [url for part in parts for url in part.image_urls]
    return (len(entry.body) - sum(map(len, images))) // 4 + TOKENS_PER_IMAGE * len(images)
