"""Copies of many events in one object, which spare a cold reader as many requests.

The first line of a segment tells the length and the hash of each body, and each body is a line. It
begins where the one before it ends, and ends at a multiple of 1,000 or where the conversation was
closed. A pure function of its slots: whoever makes it anew makes the same.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from events.base import Frozen
from events.entry import Entry
from storage.keys import SEGMENTS, TAIL, segment_key
from storage.lineage import Holder
from storage.listing import keys
from storage.store import Store

SIZE = 1000
"""Slots of a segment; those of one that begins or ends in between are fewer."""

_RANGE = re.compile(r"segments/([0-9]{6})-([0-9]{6,7})\.jsonl")


@dataclass(frozen=True)
class Segment:
    """The bodies of the slots from `first` on, each as its hash in the head says."""

    first: int
    bodies: tuple[bytes, ...]


class _Head(Frozen):
    first: int
    sizes: tuple[int, ...]
    shas: tuple[str, ...]


class Tail(Frozen):
    """The hashes of the slots from `first` on, which is where the last segment ends."""

    first: int
    shas: tuple[str, ...] = ()

    @property
    def end(self) -> int:
        return self.first + len(self.shas)


def next_boundary(seq: int) -> int:
    """Where the segment that holds slot `seq` ends at the latest."""
    return (seq // SIZE + 1) * SIZE


def packed(entries: Sequence[Entry]) -> bytes:
    """The segment of these entries, which follow one another."""
    head = _Head(
        first=entries[0].seq,
        sizes=tuple(len(entry.body) for entry in entries),
        shas=tuple(entry.sha for entry in entries),
    )
    lines = [json.dumps(head.model_dump()).encode(), *(entry.body for entry in entries)]
    return b"".join(line + b"\n" for line in lines)


def unpacked(body: bytes) -> Segment:
    """Raises ValueError where anything of it is not what was written."""
    line, _, rest = body.partition(b"\n")
    head = _Head.model_validate_json(line)
    ends = accumulate((size + 1 for size in head.sizes), initial=0)
    bodies = tuple(rest[start : end - 1] for start, end in pairwise(ends))
    if len(rest) != sum(head.sizes) + len(bodies) or tuple(map(sha_of, bodies)) != head.shas:
        raise ValueError("the bodies are not those that the head tells of")
    return Segment(head.first, bodies)


def sha_of(body: bytes) -> str:
    """The SHA-256 of a stored body, as an entry has it."""
    return hashlib.sha256(body).hexdigest()[:32]


async def ranges(store: Store, holder: Holder) -> list[tuple[int, int]]:
    """The first slot and the end of every segment that the holder has, in order."""
    found = [key async for key in keys(store, holder.prefix + SEGMENTS)]
    matches = (_RANGE.fullmatch(key.removeprefix(holder.prefix)) for key in found)
    return sorted((int(match[1]), int(match[2])) for match in matches if match)


async def segment_in(store: Store, holder: Holder, first: int, end: int) -> Segment | None:
    """The segment of these slots; none where it is missing or damaged: the slots are the truth."""
    body = await store.read(holder.prefix + segment_key(first, end))
    try:
        found = None if body is None else unpacked(body)
    except ValueError:
        return None
    fits = found is not None and (found.first, len(found.bodies)) == (first, end - first)
    return found if fits else None


async def segment_at(store: Store, holder: Holder, seq: int) -> Segment | None:
    """A whole segment that holds slot `seq`, where there is one."""
    for first, end in await ranges(store, holder):
        if first <= seq < end and (found := await segment_in(store, holder, first, end)):
            return found
    return None


async def tail_of(store: Store, holder: Holder) -> Tail | None:
    """None where there is none; raises ValueError where it is not what was written."""
    body = await store.read(holder.prefix + TAIL)
    if body is None:
        return None
    told, _, sha = body.partition(b"\n")
    if sha.decode(errors="replace") != sha_of(told):
        raise ValueError("it is not what its checksum was made of")
    return Tail.model_validate_json(told)


async def keep_tail(store: Store, holder: Holder, tail: Tail) -> None:
    told = json.dumps(tail.model_dump()).encode()
    await store.replace(holder.prefix + TAIL, told + b"\n" + sha_of(told).encode())
