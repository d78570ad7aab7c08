"""Segments: copies of many events in one object, which save a cold reader as many requests.

The first line of a segment has the length and the hash of each body, and each body is a line. A
segment begins where the one before it ends, and ends at a multiple of 1,000 or where the
conversation was closed. It is a pure function of its slots: everybody writes the same bytes.
"""

import hashlib
import json
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from itertools import accumulate, pairwise

from perdure.events.base import Frozen
from perdure.events.entry import Entry
from perdure.storage.errors import Damaged
from perdure.storage.keys import SEGMENTS, TAIL, segment_key
from perdure.storage.log.lineage import Holder, Lineage, find_holder
from perdure.storage.parallel import map_parallel
from perdure.storage.store import Store, list_keys

SEGMENT_SIZE = 1000
"""Slots of a segment; one that begins or ends in between has fewer."""

MIN_SEGMENT_READ = 100
"""A range of fewer slots is read slot by slot, without looking for a segment."""

PARALLEL_SEGMENTS = 4
"""Segments that are read at once: each is about 1 MB."""

_RANGE = re.compile(r"segments/([0-9]{6})-([0-9]{6,7})\.jsonl")


class _Head(Frozen):
    first: int
    sizes: tuple[int, ...]
    shas: tuple[str, ...]


class Tail(Frozen):
    """The hashes of the slots from `first` on, where the last segment ends."""

    first: int
    shas: tuple[str, ...] = ()

    @property
    def end(self) -> int:
        return self.first + len(self.shas)


def next_boundary(seq: int) -> int:
    """Return the latest end of a segment that holds slot `seq`."""
    return (seq // SEGMENT_SIZE + 1) * SEGMENT_SIZE


def encode_segment(entries: Sequence[Entry]) -> bytes:
    """Encode these entries, which follow one another, as a segment."""
    head = _Head(
        first=entries[0].seq,
        sizes=tuple(len(entry.body) for entry in entries),
        shas=tuple(entry.sha for entry in entries),
    )
    lines = [json.dumps(head.model_dump()).encode(), *(entry.body for entry in entries)]
    return b"".join(line + b"\n" for line in lines)


def decode_segment(first: int, end: int, body: bytes) -> list[bytes]:
    """Return the bodies of these slots. Raises ValueError if any of it is not what was written."""
    line, _, rest = body.partition(b"\n")
    head = _Head.model_validate_json(line)
    ends = accumulate((size + 1 for size in head.sizes), initial=0)
    bodies = [rest[start : stop - 1] for start, stop in pairwise(ends)]
    if len(rest) != sum(head.sizes) + len(bodies) or tuple(map(hash_body, bodies)) != head.shas:
        raise ValueError("the bodies are not those that the head tells of")
    if (head.first, len(bodies)) != (first, end - first):
        raise ValueError("the bodies are those of other slots")
    return bodies


def hash_body(body: bytes) -> str:
    """Return the first half of the body's SHA-256 in hex, as entries have it."""
    return hashlib.sha256(body).hexdigest()[:32]


async def list_ranges(store: Store, holder: Holder) -> list[tuple[int, int]]:
    """List the first slot and the end of every segment that the holder has, in order."""
    listed = [key async for key in list_keys(store, holder.prefix + SEGMENTS)]
    matches = (_RANGE.fullmatch(key.removeprefix(holder.prefix)) for key in listed)
    return sorted((int(match[1]), int(match[2])) for match in matches if match)


async def read_segment(store: Store, holder: Holder, first: int, end: int) -> list[bytes]:
    """Read the bodies in the segment of these slots; none if it is missing or damaged."""
    body = await store.read(holder.prefix + segment_key(first, end))
    with suppress(ValueError):
        return decode_segment(first, end, body or b"")
    return []


async def read_segments(
    store: Store, holder: Holder, seq: int, until: int
) -> AsyncGenerator[list[bytes], None]:
    """Yield the bodies of slot `seq` and those behind it, segment by segment.

    Ends at the first slot that no whole segment has, or with the segment that has slot `until`.
    """
    chain: list[tuple[int, int, int]] = []
    reached = seq
    for first, end in await list_ranges(store, holder):
        if first <= reached < min(end, until):
            chain.append((first, end, reached))
            reached = end

    async def read(part: tuple[int, int, int]) -> list[bytes]:
        first, end, start = part
        return (await read_segment(store, holder, first, end))[start - first :]

    async with aclosing(map_parallel(read, chain, most=PARALLEL_SEGMENTS)) as reading:
        async for bodies in reading:
            if not bodies:
                return
            yield bodies


async def read_copies(
    store: Store, lineage: Lineage, first: int, limit: int
) -> AsyncGenerator[list[bytes], None]:
    """Yield the bodies that segments have of these slots, as far as one holder has them.

    There are none of a range of fewer than MIN_SEGMENT_READ slots.
    """
    if limit < MIN_SEGMENT_READ:
        return
    later = (other.first for other in lineage if other.first > first)
    seq, until = first, min([first + limit, *later])
    holder = find_holder(lineage, first)
    async with aclosing(read_segments(store, holder, first, until)) as reading:
        async for bodies in reading:
            yield bodies[: until - seq]
            seq += len(bodies)


async def copy_segment(store: Store, holder: Holder, tail: Tail, entries: Sequence[Entry]) -> Tail:
    """Write the entries, which the tail begins with, as a segment; return the tail behind it.

    Raises Damaged for a slot altered since the tail was written: it must not be copied.
    """
    for entry, sha in zip(entries, tail.shas, strict=False):
        if entry.sha != sha:
            raise Damaged(entry.seq, holder.key(entry.seq))
    end = tail.first + len(entries)
    await store.create(holder.prefix + segment_key(tail.first, end), encode_segment(entries))
    tail = Tail(first=end, shas=tail.shas[len(entries) :])
    await write_tail(store, holder, tail)
    return tail


async def load_tail(store: Store, holder: Holder) -> Tail:
    """Read the tail; if it was lost, begin a new one behind the last segment."""
    with suppress(ValueError):
        if tail := await read_tail(store, holder):
            return tail
    ends = [end for _, end in await list_ranges(store, holder)]
    return Tail(first=max([holder.first, *ends]))


async def read_tail(store: Store, holder: Holder) -> Tail | None:
    """Read the tail; None if there is none. Raises ValueError if it is not what was written."""
    body = await store.read(holder.prefix + TAIL)
    if body is None:
        return None
    text, _, sha = body.partition(b"\n")
    if sha.decode(errors="replace") != hash_body(text):
        raise ValueError("it is not what its checksum was made of")
    return Tail.model_validate_json(text)


async def write_tail(store: Store, holder: Holder, tail: Tail) -> None:
    body = json.dumps(tail.model_dump()).encode()
    await store.replace(holder.prefix + TAIL, body + b"\n" + hash_body(body).encode())
