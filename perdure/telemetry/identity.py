"""The ids of traces and spans: they follow from the log, so that a repeat has the same.

A trace is a turn of a conversation. A span is named by what the log has of it: the slot of a
response, the id of an action, the key of an object. Whoever makes a span again, since it cannot
know whether a worker that was lost has sent it, makes the same span.
"""

import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache

_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")

TRACE_BYTES, SPAN_BYTES = 16, 8

MAX_TURNS = 1_000
"""Turns whose places are remembered: each step asks for its own a few times."""


@dataclass(frozen=True)
class SpanPlace:
    """A span in its trace."""

    trace_id: int
    span_id: int
    is_sampled: bool = True

    @property
    def traceparent(self) -> str:
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-{self.is_sampled:02x}"


@lru_cache(MAX_TURNS)
def turn_place(conversation_id: str, turn: int) -> SpanPlace:
    """Return the place of a turn's span, which is the root of its trace."""
    trace_id = _hash_to_id(f"{conversation_id} {turn}", TRACE_BYTES)
    return SpanPlace(trace_id, _hash_to_id(f"{trace_id:x} turn", SPAN_BYTES))


def part_place(turn: SpanPlace, part: str) -> SpanPlace:
    """Return the place of a part of a turn, whose name is unique in it."""
    return SpanPlace(turn.trace_id, _hash_to_id(f"{turn.trace_id:x} {part}", SPAN_BYTES))


def parse_traceparent(text: str) -> SpanPlace | None:
    """Parse W3C's `traceparent`; None for what names no span."""
    if (match := _TRACEPARENT.fullmatch(text)) is None:
        return None
    trace_id, span_id, flags = (int(digits, 16) for digits in match.groups())
    return SpanPlace(trace_id, span_id, bool(flags & 1)) if trace_id and span_id else None


def _hash_to_id(name: str, size: int) -> int:
    """Hash a name to an id of `size` bytes, which is not 0, as no id may be."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:size]) or 1
