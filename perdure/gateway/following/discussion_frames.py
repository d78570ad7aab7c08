"""Frames of a discussion as server-sent events."""

import json
from dataclasses import dataclass

from perdure.api.discussions import DiscussionStatusFrame, DiscussionSyncFrame
from perdure.api.frames import ErrorFrame
from perdure.events.discussion import DiscussionEvent


@dataclass(frozen=True)
class ReadyEvent:
    """An event as a server-sent event, made once for all clients."""

    sequence: int
    sse: bytes


def make_ready(event: DiscussionEvent) -> ReadyEvent:
    fields = {"kind": "durable", "sequence": event.sequence, "event": event.to_json()}
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    return ReadyEvent(
        event.sequence, f"id: {event.sequence}\nevent: durable\ndata: {text}\n\n".encode()
    )


def encode_frame(frame: DiscussionSyncFrame | DiscussionStatusFrame | ErrorFrame) -> bytes:
    text = frame.model_dump_json(exclude_none=True)
    return f"event: {frame.kind}\ndata: {text}\n\n".encode()
