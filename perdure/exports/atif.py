"""ATIF, the Agent Trajectory Interchange Format, version 1.8.

A step for each message and each response of the model, with its calls and their results. Other
events are steps of the system, so that a condensation stands where it took place, with its summary;
housekeeping events are left out. Steps that a fork has from another conversation are marked as
copied. A delegated conversation is named as a file beside this one.

The totals are the sums of the steps. Usage beside them (condensing, titles, delegated
conversations) is in `final_metrics.extra`, by purpose.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from perdure.events.condensation import Condensation
from perdure.events.content import Content, join_text
from perdure.events.entry import Entry
from perdure.events.event import AnyEvent, UnknownEvent
from perdure.events.messages import MessageEvent, SystemPromptEvent
from perdure.events.tools import ActionEvent, AgentErrorEvent, UserRejectObservation
from perdure.events.usage import Usage
from perdure.exports.chat import function_of
from perdure.exports.content import SAFE_MEDIA_TYPES, content_items, describe_image, media_type
from perdure.exports.format import ExportMetadata, single_file_format
from perdure.exports.json_text import Json, json_document
from perdure.exports.notes import HOUSEKEEPING_EVENTS, describe_event, utc_timestamp
from perdure.exports.totals import Totals
from perdure.exports.turns import Call, Turn, turns

VERSION = "ATIF-v1.8"

DELEGATE = "delegate"
_REPORT = re.compile(r"Conversation ([0-9a-f-]{36}): ")


def write(about: ExportMetadata, entries: Iterable[Entry]) -> Iterator[bytes]:
    totals, sums = Totals(), _Sums()
    ids = dict.fromkeys(("session_id", "trajectory_id"), about.conversation_id)
    steps = _steps(about, turns(totals.count(entries)), sums)
    head = {"schema_version": VERSION, **ids}
    return json_document(head, "steps", steps, lambda: _tail(about, totals, sums))


@dataclass
class _Sums:
    """The number of steps, and the usage of the agent's."""

    steps: int = 0
    spent: Usage = field(default_factory=Usage)


def _steps(about: ExportMetadata, turns: Iterable[Turn], sums: _Sums) -> Iterator[Json]:
    for turn in turns:
        if (fields := _step(turn)) is None:
            continue
        sums.steps += 1
        if fields["source"] == "agent" and turn.entry.usage:
            sums.spent += turn.entry.usage
        seq, time = turn.entry.seq, utc_timestamp(turn.event)
        yield {
            "step_id": sums.steps,
            **({"timestamp": time} if time else {}),
            **fields,
            "extra": {"seq": seq, **fields.get("extra", {})},
            **({"is_copied_context": True} if seq < about.first_own_seq else {}),
        }


def _step(turn: Turn) -> Json | None:
    match turn.event:
        case SystemPromptEvent():
            return {"source": "system", "message": join_text(turn.content)}
        case MessageEvent(sender=sender) as event:
            source = "user" if event.source == "user" else "system"
            plain = {"source": source, "message": _content(turn.content)}
            step = _agent_step(turn) if event.source == "agent" else plain
            extra: dict[str, Any] = {"sender": sender} if sender else {}
            extra |= {"truncated": True} if event.truncated else {}
            return step | ({"extra": extra} if extra else {})
        case ActionEvent():
            calls = [_call(call) for call in turn.calls]
            results = [_result(call) for call in turn.calls]
            return _agent_step(turn) | {"tool_calls": calls, "observation": {"results": results}}
        case event if isinstance(event, HOUSEKEEPING_EVENTS) or not describe_event(event):
            return None
        case event:
            extra = {"event": event.kind, **_note_fields(event)}
            return {"source": "system", "message": describe_event(event), "extra": extra}


def _agent_step(turn: Turn) -> Json:
    usage = turn.entry.usage
    step: Json = {"source": "agent", "message": _content(turn.content)}
    if usage is not None and usage.model:
        step["model_name"] = usage.model
    if turn.reasoning:
        step["reasoning_content"] = turn.reasoning
    if usage is not None:
        step["metrics"] = _metrics(usage)
    return step | {"llm_call_count": 1}


def _call(call: Call) -> Json:
    action, written = call.action, call.action.tool_call
    optional: Json = {
        "risk": None if action.security_risk == "UNKNOWN" else action.security_risk,
        "summary": action.summary,
        "raw_arguments": written.arguments if call.valid_arguments is None else None,
    }
    extra = {key: value for key, value in optional.items() if value is not None}
    return {
        "tool_call_id": call.id,
        "function_name": written.name,
        "arguments": call.arguments,
        **({"extra": extra} if extra else {}),
    }


def _result(call: Call) -> Json:
    result: Json = {"source_call_id": call.id, "content": _content(call.result)}
    if extra := _outcome_fields(call):
        result["extra"] = extra
    if call.action.tool_name == DELEGATE and (child := _REPORT.match(join_text(call.result))):
        name = f"{child[1]}.json"
        result["subagent_trajectory_ref"] = [{"trajectory_path": name, "session_id": child[1]}]
    return result


def _outcome_fields(call: Call) -> Json:
    match call.answer and call.answer.event:
        case None:
            return {"recorded": False}
        case AgentErrorEvent(classification=classification):
            return {"error": classification}
        case UserRejectObservation():
            return {"rejected": True}
        case UnknownEvent(raw=raw):
            return {"event": raw}
        case _:
            return {"is_error": True} if call.failed else {}


def _note_fields(event: AnyEvent) -> Json:
    match event:
        case Condensation(forgotten_event_ids=ids):
            return {"forgotten_event_ids": list(ids)}
        case UnknownEvent(raw=raw):
            return {"raw": raw}
        case _:
            return {}


def _content(parts: Iterable[Content]) -> Any:
    """Return plain text if there is only text."""
    items = content_items(parts, _image)
    if any(item["type"] == "image" for item in items):
        return items
    return "\n".join(item["text"] for item in items)


def _image(url: str) -> Json:
    kind = media_type(url)
    if kind in SAFE_MEDIA_TYPES:
        return {"type": "image", "source": {"media_type": kind, "path": url}}
    return {"type": "text", "text": describe_image(url)}


def _metrics(usage: Usage) -> Json:
    others = usage.model_dump(include={"cache_write_tokens", "reasoning_tokens", "latency"})
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cached_tokens": usage.cached_tokens,
        "cost_usd": usage.cost,
        **({"extra": others} if others else {}),
    }


def _tail(about: ExportMetadata, totals: Totals, sums: _Sums) -> Mapping[str, Any]:
    agent = {
        "name": "perdure",
        "version": about.version,
        **({"model_name": about.model} if about.model else {}),
        "tool_definitions": [function_of(tool) for tool in totals.tools.values()],
    }
    fields = {"status": about.status, "reason": about.reason, "title": about.title}
    beside: defaultdict[str, Usage] = defaultdict(Usage)
    for (purpose, _), usage in totals.usage.items():
        if purpose:
            beside[purpose] += usage
    return {
        "agent": agent,
        **({"notes": totals.unreadable_note} if totals.unreadable_note else {}),
        "final_metrics": {
            "total_prompt_tokens": sums.spent.prompt_tokens,
            "total_completion_tokens": sums.spent.completion_tokens,
            "total_cached_tokens": sums.spent.cached_tokens,
            "total_cost_usd": sums.spent.cost,
            "total_steps": sums.steps,
            "extra": {
                "cost_usd_with_all_beside": totals.total.cost,
                "beside": {purpose: usage.model_dump() for purpose, usage in beside.items()},
            },
        },
        "extra": {key: value for key, value in fields.items() if value},
    }


ATIF = single_file_format(
    "atif", ".json", "an ATIF trajectory, version 1.8", write, is_one_line=True
)
