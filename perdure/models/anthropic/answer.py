"""Anthropic's answers, converted to chunks of chat completions as litellm does it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Json: TypeAlias = Mapping[str, Any]

EMPTY: Json = {}

FINISH_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "max_tokens": "length",
    "compaction": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}


class AnswerReader:
    """The reader of one answer's events, or of a whole answer."""

    def __init__(self) -> None:
        self._usage: dict[str, Any] = {}
        self._calls = 0
        self._is_call = False
        """The events belong to a tool call."""

    def is_last(self, event: Any) -> bool:
        return isinstance(event, Mapping) and event.get("type") == "message_stop"

    def read(self, event: Any) -> Any:
        """Convert an event to a chunk; None if it says nothing.

        What is no event is returned as it is, and so are errors.
        """
        if not isinstance(event, Mapping) or event.get("error"):
            return event
        match event.get("type"):
            case "message_start":
                return self._start(_object(event, "message"))
            case "content_block_start":
                return self._open_block(_object(event, "content_block"))
            case "content_block_delta":
                return self._add(_object(event, "delta"))
            case "message_delta":
                return self._end(_object(event, "delta"), event.get("usage"))
            case "message":
                return self._read_whole(event)
        return None

    def _start(self, message: Json) -> Json:
        return {"id": message.get("id"), **_chunk(EMPTY), **self._count(message.get("usage"))}

    def _end(self, delta: Json, usage: Any) -> Json:
        reason = FINISH_REASONS.get(str(delta.get("stop_reason")), "stop")
        return {**_chunk(EMPTY, reason), **self._count(usage)}

    def _open_block(self, block: Json) -> Json | None:
        kind = block.get("type")
        self._is_call = kind == "tool_use"
        if kind == "text":
            return _chunk({"content": block.get("text")})
        if kind == "redacted_thinking":
            return _chunk({"thinking_blocks": [block]})
        if not self._is_call:
            return None
        self._calls += 1
        function = {"name": block.get("name"), "arguments": ""}
        return self._chunk_of_call({"id": block.get("id"), "function": function})

    def _add(self, delta: Json) -> Json | None:
        match delta.get("type"):
            case "text_delta":
                return _chunk({"content": delta.get("text")})
            case "thinking_delta":
                text = delta.get("thinking")
                blocks = [{"type": "thinking", "thinking": text}]
                return _chunk({"reasoning_content": text, "thinking_blocks": blocks})
            case "signature_delta":
                block = {"type": "thinking", "signature": delta.get("signature")}
                return _chunk({"thinking_blocks": [block]})
            case "input_json_delta" if self._is_call:
                return self._chunk_of_call({"function": {"arguments": delta.get("partial_json")}})
        return None

    def _chunk_of_call(self, call: Json) -> Json:
        return _chunk({"tool_calls": [{"index": self._calls - 1, **call}]})

    def _read_whole(self, message: Json) -> Json:
        """Convert an answer that was not streamed."""
        blocks = _objects(message.get("content"))
        thoughts = [block for block in blocks if str(block.get("type")).endswith("thinking")]
        whole = {
            "content": "".join(block["text"] for block in blocks if block.get("type") == "text"),
            "reasoning_content": "".join(block.get("thinking") or "" for block in thoughts),
            "thinking_blocks": thoughts,
            "tool_calls": [
                {"index": index, "id": block.get("id"), "function": _function_of(block)}
                for index, block in enumerate(blocks)
                if block.get("type") == "tool_use"
            ],
        }
        end = self._end({"stop_reason": message.get("stop_reason")}, message.get("usage"))
        return {"id": message.get("id"), **end, **_chunk(whole, end["choices"][0]["finish_reason"])}

    def _count(self, usage: Any) -> Json:
        """Add up the counts of tokens: later ones replace earlier ones, if they are there."""
        if not isinstance(usage, Mapping):
            return EMPTY
        self._usage.update(usage)
        return {"usage": convert_usage(self._usage)}


def convert_usage(usage: Json) -> Json:
    """Convert Anthropic's counts of tokens, which has those of the cache beside the prompt's.

    What decides about the price is kept.
    """
    counts = _objects(usage.get("iterations")) or [usage]
    fresh, answer = _sum(counts, "input_tokens"), _sum(counts, "output_tokens")
    read = _sum(counts, "cache_read_input_tokens")
    written = _sum(counts, "cache_creation_input_tokens")
    thoughts = _sum([_object(usage, "output_tokens_details")], "thinking_tokens")
    return {
        "prompt_tokens": fresh + read + written,
        "completion_tokens": answer,
        "prompt_tokens_details": {"cached_tokens": read, "cache_write_tokens": written},
        "completion_tokens_details": {"reasoning_tokens": min(max(0, thoughts), answer)},
        **{name: usage.get(name) for name in ("cache_creation", "inference_geo", "speed")},
    }


def _sum(counts: Sequence[Json], name: str) -> int:
    numbers = (count.get(name) for count in counts)
    return sum(int(number) for number in numbers if isinstance(number, int | float))


def _object(holder: Json, name: str) -> Json:
    """Return the object in a field; empty if there is none."""
    value = holder.get(name)
    return value if isinstance(value, Mapping) else EMPTY


def _objects(value: Any) -> list[Json]:
    items = value if isinstance(value, list) else []
    return [item for item in items if isinstance(item, Mapping)]


def _function_of(block: Json) -> Json:
    return {"name": block.get("name"), "arguments": json.dumps(block.get("input") or {})}


def _chunk(delta: Json, finish_reason: str | None = None) -> Json:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}
