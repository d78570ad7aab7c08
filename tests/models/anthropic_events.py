"""Answers of Anthropic's Messages API, as servers send them."""

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

Event: TypeAlias = tuple[str, Mapping[str, Any]]

THOUGHTFUL: tuple[Event, ...] = (
    ("message_start", {"message": {"id": "m1", "usage": {"input_tokens": 9, "output_tokens": 1}}}),
    ("content_block_start", {"index": 0, "content_block": {"type": "thinking", "thinking": ""}}),
    ("content_block_delta", {"index": 0, "delta": {"type": "thinking_delta", "thinking": "h"}}),
    ("ping", {}),
    ("content_block_delta", {"index": 0, "delta": {"type": "thinking_delta", "thinking": "m"}}),
    ("content_block_delta", {"index": 0, "delta": {"type": "signature_delta", "signature": "s"}}),
    ("content_block_stop", {"index": 0}),
    ("content_block_start", {"index": 1, "content_block": {"type": "text", "text": ""}}),
    ("content_block_delta", {"index": 1, "delta": {"type": "text_delta", "text": "Hi "}}),
    ("content_block_delta", {"index": 1, "delta": {"type": "text_delta", "text": "there"}}),
    ("content_block_stop", {"index": 1}),
    (
        "content_block_start",
        {"index": 2, "content_block": {"type": "tool_use", "id": "t1", "name": "f", "input": {}}},
    ),
    (
        "content_block_delta",
        {"index": 2, "delta": {"type": "input_json_delta", "partial_json": '{"a"'}},
    ),
    (
        "content_block_delta",
        {"index": 2, "delta": {"type": "input_json_delta", "partial_json": ": 1}"}},
    ),
    ("content_block_stop", {"index": 2}),
    ("message_delta", {"delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 20}}),
    ("message_stop", {}),
)


def events(*pairs: Event) -> bytes:
    """Build a body of server-sent events."""
    return b"".join(
        f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()
        for kind, fields in pairs
    )


def text_block(index: int, *texts: str) -> list[Event]:
    """Build the events of a block of text."""
    start = {"index": index, "content_block": {"type": "text", "text": ""}}
    deltas = [{"index": index, "delta": {"type": "text_delta", "text": text}} for text in texts]
    return [
        ("content_block_start", start),
        *(("content_block_delta", delta) for delta in deltas),
        ("content_block_stop", {"index": index}),
    ]


def call_block(index: int, name: str, call_id: str, *pieces: str) -> list[Event]:
    """Build the events of a tool call."""
    block = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
    deltas = [
        {"index": index, "delta": {"type": "input_json_delta", "partial_json": piece}}
        for piece in pieces
    ]
    return [
        ("content_block_start", {"index": index, "content_block": block}),
        *(("content_block_delta", delta) for delta in deltas),
        ("content_block_stop", {"index": index}),
    ]


def answer(
    *blocks: Event,
    reason: str | None = "end_turn",
    start_usage: Mapping[str, Any] | None = None,
    usage: Mapping[str, Any] | None = None,
) -> bytes:
    """Build the body of a whole streamed answer."""
    counts = start_usage or {"input_tokens": 3, "output_tokens": 1}
    delta = {"stop_reason": reason, "stop_sequence": None}
    return events(
        ("message_start", {"message": {"id": "m1", "model": "claude", "usage": counts}}),
        *blocks,
        ("message_delta", {"delta": delta, "usage": usage or {"output_tokens": 2}}),
        ("message_stop", {}),
    )


def said(*texts: str, reason: str | None = "end_turn") -> bytes:
    """Build the body of a streamed answer of text alone."""
    return answer(*text_block(0, *texts), reason=reason)
