"""Frames as JSON, made once for all clients that receive them."""

import json
from dataclasses import dataclass
from functools import cached_property

from perdure.api.frames import FRAME, Frame


@dataclass(frozen=True)
class ReadyFrame:
    """A frame as the text that a socket sends; `seq` is the slot of a `durable` one."""

    kind: str
    text: str
    seq: int | None = None

    @cached_property
    def sse(self) -> bytes:
        """The frame as a server-sent event."""
        head = f"event: {self.kind}\n" if self.seq is None else f"id: {self.seq}\nevent: durable\n"
        return f"{head}data: {self.text}\n\n".encode()

    @cached_property
    def frame(self) -> Frame:
        """The frame, parsed."""
        return FRAME.validate_json(self.text)


def make_ready(frame: Frame) -> ReadyFrame:
    """Make any frame ready but a `durable` one."""
    return ReadyFrame(frame.kind, frame.model_dump_json(exclude_none=True))


def make_durable(seq: int, body: bytes) -> ReadyFrame:
    """Make the frame of an entry from its bytes as stored, without parsing them."""
    return ReadyFrame("durable", f'{{"kind":"durable","seq":{seq},"entry":{_as_line(body)}}}', seq)


def _as_line(body: bytes) -> str:
    """Return stored JSON as one line, without the constants that JSON does not have.

    Python writes and reads NaN and Infinity, which no other reader takes.
    """
    if b"NaN" in body or b"Infinity" in body:
        fields = json.loads(body, parse_constant=str)
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    return body.decode().replace("\n", " ").replace("\r", " ")
