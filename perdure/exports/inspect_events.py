"""The events of a sample in an Inspect log, which its viewer shows as the transcript.

A model's input refers to a pool of messages, and a long text to the sample's attachments, as in
Inspect's own logs: so the events grow with the conversation, and not with its square.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import AwareDatetime, TypeAdapter

from perdure.events.condensation import Condensation
from perdure.events.messages import MessageEvent, SystemPromptEvent
from perdure.events.usage import Usage
from perdure.exports.json_text import Json
from perdure.exports.notes import HOUSEKEEPING_EVENTS, describe_event, utc_timestamp
from perdure.exports.turns import Call, Turn, is_model_response

MOMENT = TypeAdapter(AwareDatetime)

MIN_ATTACHED_CHARS = 100
"""Length of a text from which on it is an attachment; Inspect has the same."""

EVENT_LIMIT_TYPES = ("message", "token", "cost", "time")
"""Inspect's types of a limit that an event may have; any other is a custom one."""


class Transcript:
    """The events of a sample, with the messages and texts to which they refer.

    They are in memory up to the sample's end, for they follow its messages in the log.
    """

    def __init__(self, model: str) -> None:
        self.events: list[Json] = []
        self.pool: list[Json] = []
        self.attachments: dict[str, str] = {}
        self._model = model
        self._tools: list[Json] = []
        self._view: list[tuple[str, int]] = []
        """What the model sees now: ids of events, and the positions of their messages."""
        self._first = self._last = ""

    def add(self, turn: Turn, messages: Sequence[Json]) -> None:
        """Add a turn of the log and the messages that were made of it."""
        event, before = turn.event, self._last
        self._last = utc_timestamp(event) or self._last
        self._first = self._first or self._last
        if isinstance(event, SystemPromptEvent):
            self._tools = [_tool(tool.name, tool.description) for tool in event.tools]
        is_partial = isinstance(event, MessageEvent) and event.sender == "interrupted"
        if messages and (is_partial or is_model_response(event)):
            self._add_model_call(turn, messages[0], before)
        for message in messages:
            self._view.append((message.get("id", ""), len(self.pool)))
            self.pool.append(self._attach(message))
        for call, message in zip(turn.calls, messages[1:], strict=False):
            self._add_tool_call(call, message)
        if isinstance(event, Condensation):
            self._condense(event)
        is_other = not isinstance(event, (*HOUSEKEEPING_EVENTS, MessageEvent))
        if is_other and (text := describe_event(event)):
            data = {"kind": event.kind, "seq": turn.entry.seq, "note": self._attach(text)}
            self._add("info", self._last, uuid=event.id, source="perdure", data=data)

    def finish(self, sample: Json, scores: Json, error: Json, limit: Json | None) -> Json:
        """Return the sample's last fields, with the events of its beginning and its end."""
        first = {**sample, "input": self._attach(sample["input"])}
        beginning = self._event("sample_init", self._first, sample=first, state={})
        if limit is not None:
            kind = limit["type"] if limit["type"] in EVENT_LIMIT_TYPES else "custom"
            fields = {"type": kind, "message": limit["reason"], "limit": limit["limit"]}
            self._add("sample_limit", self._last, **fields)
        if error:
            self._add("error", self._last, **error)
        for name, score in scores.items():
            fields = {"score": score, "target": sample["target"], "scorer": name}
            self._add("score", self._last, **fields)
        return {
            "events": [beginning, *self.events] if self._first else [],
            "events_data": {"messages": self.pool, "calls": []},
            "attachments": self.attachments,
        }

    def _add_model_call(self, turn: Turn, message: Json, before: str) -> None:
        usage = turn.entry.usage
        model = (usage and usage.model) or self._model
        seconds = _seconds(before, self._last)
        is_cut = isinstance(turn.event, MessageEvent) and turn.event.truncated
        reason = "max_tokens" if is_cut else "tool_calls" if turn.calls else "stop"
        output = {
            "model": model,
            "choices": [{"message": self._attach(message), "stop_reason": reason}],
            "time": seconds,
            **({"usage": format_model_usage(usage)} if usage else {}),
        }
        self._add(
            "model",
            before or self._last,
            uuid=turn.event.id,
            model=model,
            input=[],
            input_refs=list(_ranges([position for _, position in self._view])),
            tools=self._tools,
            tool_choice="auto",
            config={},
            output=output,
            completed=self._last,
            working_time=seconds,
        )

    def _add_tool_call(self, call: Call, message: Json) -> None:
        start = utc_timestamp(call.action) or self._last
        end = (call.answer and utc_timestamp(call.answer.event)) or start
        self._last = max(self._last, end)
        self._add(
            "tool",
            start,
            uuid=call.action.id,
            type="function",
            id=call.id,
            function=call.action.tool_name,
            arguments=self._attach(call.arguments),
            result=self._attach(_tool_result(message["content"])),
            completed=end,
            working_time=_seconds(start, end),
            **{name: message[name] for name in ("error",) if name in message},
            **({"message_id": message["id"]} if "id" in message else {}),
        )

    def _condense(self, event: Condensation) -> None:
        """Leave out of the view what the model does not see any more, and add the summary."""
        self._add("compaction", self._last, type="summary" if event.summary else "trim")
        forgotten = set(event.forgotten_event_ids)
        self._view = [item for item in self._view if item[0] not in forgotten]
        if event.summary:
            place = min(event.summary_offset or 0, len(self._view))
            self._view.insert(place, (event.id, len(self.pool)))
            self.pool.append({"role": "user", "content": self._attach(event.summary)})

    def _add(self, kind: str, time: str, **fields: Any) -> None:
        self.events.append(self._event(kind, time, **fields))

    def _event(self, kind: str, time: str, **fields: Any) -> Json:
        start = _seconds(self._first, time)
        return {"event": kind, "timestamp": time, "working_start": start, **fields}

    def _attach(self, value: Any) -> Any:
        """Replace long texts by references to attachments."""
        match value:
            case str() if len(value) > MIN_ATTACHED_CHARS:
                name = hashlib.sha256(value.encode(errors="replace")).hexdigest()[:32]
                self.attachments[name] = value
                return f"attachment://{name}"
            case dict():
                return {key: self._attach(item) for key, item in value.items()}
            case list():
                return [self._attach(item) for item in value]
            case _:
                return value


def format_model_usage(usage: Usage) -> Json:
    """Format usage for Inspect, which counts tokens from and to a cache apart from the input."""
    cached = usage.cached_tokens + usage.cache_write_tokens
    return {
        "input_tokens": max(0, usage.prompt_tokens - cached),
        "output_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "input_tokens_cache_read": usage.cached_tokens,
        "input_tokens_cache_write": usage.cache_write_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "total_cost": usage.cost,
    }


def _tool(name: str, description: str) -> Json:
    return {"name": name, "description": description.strip().partition("\n")[0]}


def _tool_result(content: list[Json]) -> str | list[Json]:
    """Return the text of a result, or its parts where one is no text."""
    if all(part["type"] == "text" for part in content):
        return "\n".join(part["text"] for part in content)
    return content


def _seconds(start: str, end: str) -> float:
    if not start or not end:
        return 0.0
    passed = MOMENT.validate_python(end) - MOMENT.validate_python(start)
    return max(0.0, passed.total_seconds())


def _ranges(positions: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield runs of successive positions, each as its first one and the one after its last."""
    start = 0
    for at in range(1, len(positions) + 1):
        if at == len(positions) or positions[at] != positions[at - 1] + 1:
            yield positions[start], positions[at - 1] + 1
            start = at
