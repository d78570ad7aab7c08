"""ATIF, the Agent Trajectory Interchange Format, version 1.8.

A step for each message and each answer of the model, with its calls and their results. What else
happened is a step of the system, so that a condensation stands where it took place, its summary
with it; what only keeps house is left out. Steps that a fork has from another conversation are
marked as copied. A conversation that was delegated to is named as a file beside this one.

The totals are the sums of the steps. What was spent beside them (condensing, titles, delegated
conversations) is in `final_metrics.extra`, by purpose.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from events.condensation import Condensation
from events.content import Content, TextContent, text_of
from events.entry import Entry
from events.event import AnyEvent, UnknownEvent
from events.messages import MessageEvent, SystemPromptEvent
from events.tools import ActionEvent, AgentErrorEvent, UserRejectObservation
from events.usage import Usage
from exports.arguments import are_readable, arguments_of
from exports.chat import function_of
from exports.format import About, document
from exports.images import SHOWABLE, media_type, named
from exports.json_text import document as json_document
from exports.notes import QUIET, moment, note
from exports.totals import Totals, added
from exports.turns import Call, Turn, reasoning_of, said_in, turns

VERSION = "ATIF-v1.8"

DELEGATE = "delegate"
_REPORT = re.compile(r"Conversation ([0-9a-f-]{36}): ")


def write(about: About, entries: Iterable[Entry]) -> Iterator[bytes]:
    totals, steps = Totals(), _Steps(about)
    head = {
        "schema_version": VERSION,
        "session_id": about.conversation_id,
        "trajectory_id": about.conversation_id,
    }
    numbered = steps.numbered(turns(totals.watch(entries)))
    return json_document(head, "steps", numbered, lambda: _tail(about, totals, steps))


class _Steps:
    """Numbers the steps, and keeps count of what they took."""

    def __init__(self, about: About) -> None:
        self.about = about
        self.count = 0
        self.spent = Usage()

    def numbered(self, told: Iterable[Turn]) -> Iterator[dict[str, Any]]:
        for turn in told:
            fields = _step(turn)
            if fields is None:
                continue
            self.count += 1
            if fields["source"] == "agent" and turn.entry.usage:
                self.spent = added(self.spent, turn.entry.usage)
            copied = {"is_copied_context": True} if turn.entry.seq < self.about.own else {}
            extra = {"seq": turn.entry.seq, **fields.pop("extra", {})}
            at = {"timestamp": moment(turn.event)} if moment(turn.event) else {}
            yield {"step_id": self.count, **at, **fields, "extra": extra, **copied}


def _step(turn: Turn) -> dict[str, Any] | None:
    match turn.event:
        case SystemPromptEvent() as event:
            context = [event.dynamic_context] if event.dynamic_context else []
            return {"source": "system", "message": text_of((event.system_prompt, *context))}
        case MessageEvent() as event if event.source == "agent":
            return _agent(turn, said_in(turn)) | _sent_by(event)
        case MessageEvent() as event:
            return _said(event, _content(said_in(turn)))
        case ActionEvent() as event:
            return _acted(turn, event)
        case event if isinstance(event, QUIET) or not note(event):
            return None
        case event:
            return {"source": "system", "message": note(event), "extra": _noted(event)}


def _said(event: MessageEvent, message: Any) -> dict[str, Any]:
    source = "user" if event.source == "user" else "system"
    return {"source": source, "message": message, **_sent_by(event)}


def _sent_by(event: MessageEvent) -> dict[str, Any]:
    return {"extra": {"sender": event.sender}} if event.sender else {}


def _agent(turn: Turn, words: Iterable[Content]) -> dict[str, Any]:
    event, usage = turn.event, turn.entry.usage
    step: dict[str, Any] = {"source": "agent", "message": _content(words)}
    if usage is not None and usage.model:
        step["model_name"] = usage.model
    if reasoning := reasoning_of(event):
        step["reasoning_content"] = reasoning
    if usage is not None:
        step["metrics"] = _metrics(usage)
    return step | {"llm_call_count": 1}


def _acted(turn: Turn, event: ActionEvent) -> dict[str, Any]:
    calls = [_call(call) for call in turn.calls]
    results = [_result(call) for call in turn.calls]
    step = _agent(turn, event.thought)
    return step | {"tool_calls": calls, "observation": {"results": results}}


def _call(call: Call) -> dict[str, Any]:
    action = call.action
    told: dict[str, Any] = {
        "risk": None if action.security_risk == "UNKNOWN" else action.security_risk,
        "summary": action.summary,
        "raw_arguments": None if are_readable(action) else action.tool_call.arguments,
    }
    extra = {key: value for key, value in told.items() if value is not None}
    return {
        "tool_call_id": call.id,
        "function_name": action.tool_call.name,
        "arguments": arguments_of(action),
        **({"extra": extra} if extra else {}),
    }


def _result(call: Call) -> dict[str, Any]:
    result: dict[str, Any] = {"source_call_id": call.id, "content": _content(call.result)}
    if extra := _outcome(call):
        result["extra"] = extra
    if call.action.tool_name == DELEGATE and (child := _REPORT.match(text_of(_texts(call)))):
        name = f"{child[1]}.json"
        result["subagent_trajectory_ref"] = [{"trajectory_path": name, "session_id": child[1]}]
    return result


def _texts(call: Call) -> Iterator[TextContent]:
    return (part for part in call.result if isinstance(part, TextContent))


def _outcome(call: Call) -> dict[str, Any]:
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


def _noted(event: AnyEvent) -> dict[str, Any]:
    match event:
        case Condensation():
            forgotten = list(event.forgotten_event_ids)
            return {"event": event.kind, "forgotten_event_ids": forgotten}
        case UnknownEvent():
            return {"event": event.kind, "raw": event.raw}
        case _:
            return {"event": event.kind}


def _content(parts: Iterable[Content]) -> Any:
    """Text where there is nothing but text."""
    formed = [one for part in parts for one in _part(part)]
    if any(one["type"] == "image" for one in formed):
        return formed
    return "\n".join(one["text"] for one in formed)


def _part(part: Content) -> Iterator[dict[str, Any]]:
    if isinstance(part, TextContent):
        yield {"type": "text", "text": part.text}
        return
    for url in part.image_urls:
        kind = media_type(url)
        if kind in SHOWABLE:
            yield {"type": "image", "source": {"media_type": kind, "path": url}}
        else:
            yield {"type": "text", "text": named(url)}


def _metrics(usage: Usage) -> dict[str, Any]:
    others = usage.model_dump(include={"cache_write_tokens", "reasoning_tokens", "latency"})
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cached_tokens": usage.cached_tokens,
        "cost_usd": usage.cost,
        **({"extra": others} if others else {}),
    }


def _tail(about: About, totals: Totals, steps: _Steps) -> Mapping[str, Any]:
    agent = {
        "name": "perdure",
        "version": about.version,
        **({"model_name": about.model} if about.model else {}),
        "tool_definitions": [function_of(tool) for tool in totals.tools.values()],
    }
    told = {"status": about.status, "reason": about.reason, "title": about.title}
    return {
        "agent": agent,
        **({"notes": totals.lost} if totals.lost else {}),
        "final_metrics": _final(totals, steps),
        "extra": {key: value for key, value in told.items() if value},
    }


def _final(totals: Totals, steps: _Steps) -> dict[str, Any]:
    beside: dict[str, Usage] = {}
    for (purpose, _), usage in totals.spent.items():
        if purpose:
            beside[purpose] = added(beside.get(purpose, Usage()), usage)
    spent = {purpose: usage.model_dump() for purpose, usage in beside.items()}
    return {
        "total_prompt_tokens": steps.spent.prompt_tokens,
        "total_completion_tokens": steps.spent.completion_tokens,
        "total_cached_tokens": steps.spent.cached_tokens,
        "total_cost_usd": steps.spent.cost,
        "total_steps": steps.count,
        "extra": {"cost_usd_with_all_beside": totals.all.cost, "beside": spent},
    }


ATIF = document("atif", ".json", "an ATIF trajectory, version 1.8", write, joins=True)
