"""ATIF, the Agent Trajectory Interchange Format, version 1.8.

A step for each message and each response of the model, with its calls and their results. Other
events are steps of the system, so that a condensation stands where it took place, with its summary;
housekeeping events are left out. Steps that a fork has from another conversation are marked as
copied. A delegated conversation is named as a file beside this one.

The totals are the sums of the steps. Usage beside them (condensing, titles, delegated
conversations) is in `final_metrics.extra`, by purpose.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from perdure.events.condensation import Condensation
from perdure.events.content import Content, join_text
from perdure.events.entry import Entry
from perdure.events.event import AnyEvent, UnknownEvent
from perdure.events.messages import MessageEvent, SystemPromptEvent
from perdure.events.tools import ActionEvent, AgentErrorEvent, UserRejectObservation
from perdure.events.usage import Usage
from perdure.exports.arguments import are_readable, arguments_of
from perdure.exports.chat import content_items, function_of
from perdure.exports.format import ExportMetadata, single_file_format
from perdure.exports.images import SAFE_MEDIA_TYPES, describe_image, media_type
from perdure.exports.json_text import json_document as json_document
from perdure.exports.notes import HOUSEKEEPING_EVENTS, describe_event, utc_timestamp
from perdure.exports.totals import Totals
from perdure.exports.turns import Call, Turn, message_content, reasoning_of, turns

VERSION = "ATIF-v1.8"

DELEGATE = "delegate"
_REPORT = re.compile(r"Conversation ([0-9a-f-]{36}): ")


def write(about: ExportMetadata, entries: Iterable[Entry]) -> Iterator[bytes]:
    totals, steps = Totals(), _Steps(about)
    head = {
        "schema_version": VERSION,
        "session_id": about.conversation_id,
        "trajectory_id": about.conversation_id,
    }
    numbered = steps.numbered(turns(totals.count(entries)))
    return json_document(head, "steps", numbered, lambda: _tail(about, totals, steps))


class _Steps:
    """Numbers the steps, and sums their usage."""

    def __init__(self, about: ExportMetadata) -> None:
        self.about = about
        self.count = 0
        self.spent = Usage()

    def numbered(self, turns: Iterable[Turn]) -> Iterator[dict[str, Any]]:
        for turn in turns:
            fields = _step(turn)
            if fields is None:
                continue
            self.count += 1
            if fields["source"] == "agent" and turn.entry.usage:
                self.spent += turn.entry.usage
            copied = (
                {"is_copied_context": True} if turn.entry.seq < self.about.first_own_seq else {}
            )
            extra = {"seq": turn.entry.seq, **fields.pop("extra", {})}
            time = {"timestamp": utc_timestamp(turn.event)} if utc_timestamp(turn.event) else {}
            yield {"step_id": self.count, **time, **fields, "extra": extra, **copied}


def _step(turn: Turn) -> dict[str, Any] | None:
    match turn.event:
        case SystemPromptEvent() as event:
            context = [event.dynamic_context] if event.dynamic_context else []
            return {"source": "system", "message": join_text((event.system_prompt, *context))}
        case MessageEvent() as event if event.source == "agent":
            return _agent_step(turn, message_content(turn)) | _sent_by(event)
        case MessageEvent() as event:
            return _message_step(event, _content(message_content(turn)))
        case ActionEvent() as event:
            return _calls_step(turn, event)
        case event if isinstance(event, HOUSEKEEPING_EVENTS) or not describe_event(event):
            return None
        case event:
            return {
                "source": "system",
                "message": describe_event(event),
                "extra": _note_fields(event),
            }


def _message_step(event: MessageEvent, message: Any) -> dict[str, Any]:
    source = "user" if event.source == "user" else "system"
    return {"source": source, "message": message, **_sent_by(event)}


def _sent_by(event: MessageEvent) -> dict[str, Any]:
    return {"extra": {"sender": event.sender}} if event.sender else {}


def _agent_step(turn: Turn, content: Iterable[Content]) -> dict[str, Any]:
    event, usage = turn.event, turn.entry.usage
    step: dict[str, Any] = {"source": "agent", "message": _content(content)}
    if usage is not None and usage.model:
        step["model_name"] = usage.model
    if reasoning := reasoning_of(event):
        step["reasoning_content"] = reasoning
    if usage is not None:
        step["metrics"] = _metrics(usage)
    return step | {"llm_call_count": 1}


def _calls_step(turn: Turn, event: ActionEvent) -> dict[str, Any]:
    calls = [_call(call) for call in turn.calls]
    results = [_result(call) for call in turn.calls]
    step = _agent_step(turn, event.thought)
    return step | {"tool_calls": calls, "observation": {"results": results}}


def _call(call: Call) -> dict[str, Any]:
    action = call.action
    optional: dict[str, Any] = {
        "risk": None if action.security_risk == "UNKNOWN" else action.security_risk,
        "summary": action.summary,
        "raw_arguments": None if are_readable(action) else action.tool_call.arguments,
    }
    extra = {key: value for key, value in optional.items() if value is not None}
    return {
        "tool_call_id": call.id,
        "function_name": action.tool_call.name,
        "arguments": arguments_of(action),
        **({"extra": extra} if extra else {}),
    }


def _result(call: Call) -> dict[str, Any]:
    result: dict[str, Any] = {"source_call_id": call.id, "content": _content(call.result)}
    if extra := _outcome_fields(call):
        result["extra"] = extra
    if call.action.tool_name == DELEGATE and (child := _REPORT.match(join_text(call.result))):
        name = f"{child[1]}.json"
        result["subagent_trajectory_ref"] = [{"trajectory_path": name, "session_id": child[1]}]
    return result


def _outcome_fields(call: Call) -> dict[str, Any]:
    if call.answer is None:
        return {"recorded": False}
    match call.answer.event:
        case AgentErrorEvent() as event:
            return {"error": event.classification}
        case UserRejectObservation():
            return {"rejected": True}
        case UnknownEvent() as event:
            return {"event": event.raw}
        case _:
            return {"is_error": True} if call.failed else {}


def _note_fields(event: AnyEvent) -> dict[str, Any]:
    match event:
        case Condensation():
            forgotten = list(event.forgotten_event_ids)
            return {"event": event.kind, "forgotten_event_ids": forgotten}
        case UnknownEvent():
            return {"event": event.kind, "raw": event.raw}
        case _:
            return {"event": event.kind}


def _content(parts: Iterable[Content]) -> Any:
    """Return plain text if there is only text."""
    items = content_items(parts, _image)
    if any(item["type"] == "image" for item in items):
        return items
    return "\n".join(item["text"] for item in items)


def _image(url: str) -> dict[str, Any]:
    kind = media_type(url)
    if kind in SAFE_MEDIA_TYPES:
        return {"type": "image", "source": {"media_type": kind, "path": url}}
    return {"type": "text", "text": describe_image(url)}


def _metrics(usage: Usage) -> dict[str, Any]:
    others = usage.model_dump(include={"cache_write_tokens", "reasoning_tokens", "latency"})
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cached_tokens": usage.cached_tokens,
        "cost_usd": usage.cost,
        **({"extra": others} if others else {}),
    }


def _tail(about: ExportMetadata, totals: Totals, steps: _Steps) -> Mapping[str, Any]:
    agent = {
        "name": "perdure",
        "version": about.version,
        **({"model_name": about.model} if about.model else {}),
        "tool_definitions": [function_of(tool) for tool in totals.tools.values()],
    }
    fields = {"status": about.status, "reason": about.reason, "title": about.title}
    return {
        "agent": agent,
        **({"notes": totals.unreadable_note} if totals.unreadable_note else {}),
        "final_metrics": _final(totals, steps),
        "extra": {key: value for key, value in fields.items() if value},
    }


def _final(totals: Totals, steps: _Steps) -> dict[str, Any]:
    by_purpose: dict[str, Usage] = {}
    for (purpose, _), usage in totals.usage.items():
        if purpose:
            by_purpose[purpose] = by_purpose.get(purpose, Usage()) + usage
    usage_by_purpose = {purpose: usage.model_dump() for purpose, usage in by_purpose.items()}
    return {
        "total_prompt_tokens": steps.spent.prompt_tokens,
        "total_completion_tokens": steps.spent.completion_tokens,
        "total_cached_tokens": steps.spent.cached_tokens,
        "total_cost_usd": steps.spent.cost,
        "total_steps": steps.count,
        "extra": {"cost_usd_with_all_beside": totals.total.cost, "beside": usage_by_purpose},
    }


ATIF = single_file_format(
    "atif", ".json", "an ATIF trajectory, version 1.8", write, is_one_line=True
)
