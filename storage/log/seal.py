"""Sealing: copying slots into segments, 1,000 once they are full, fewer when a conversation closes.

Nothing depends on segments. `verify` compares the slots with them and with the tail.
"""

from perdure.events.entry import Entry
from perdure.storage.errors import Damaged
from perdure.storage.keys import segment_key
from perdure.storage.log.lineage import Holder
from perdure.storage.log.reader import LogReader
from perdure.storage.log.segments import (
    Tail,
    encode_segment,
    list_ranges,
    next_boundary,
    read_tail,
    write_tail,
)


async def seal(log: LogReader, end: int, closing: bool = False) -> None:
    """Make sure that every own slot before `end` is in a segment or in the tail.

    With `closing` all of them go into segments. A repeated call reads the tail and only what is
    new. Raises Missing and Damaged where a slot cannot be read, or was altered.
    """
    holder = (await log.lineage())[0]
    tail = await _load_tail(log, holder)
    while tail.first < end and (closing or next_boundary(tail.first) <= end):
        segment_end = min(end, next_boundary(tail.first))
        entries = await log.read(tail.first, segment_end - tail.first)
        _check_hashes(tail, holder, entries)
        key = holder.prefix + segment_key(tail.first, segment_end)
        await log.store.create(key, encode_segment(entries))
        tail = Tail(first=segment_end, shas=tail.shas[segment_end - tail.first :])
        await write_tail(log.store, holder, tail)
    if tail.end < end:
        new = await log.read(tail.end, end - tail.end)
        shas = (*tail.shas, *(entry.sha for entry in new))
        await write_tail(log.store, holder, Tail(first=tail.first, shas=shas))


async def _load_tail(log: LogReader, holder: Holder) -> Tail:
    """Read the tail; if it was lost, begin a new one behind the last segment."""
    try:
        tail = await read_tail(log.store, holder)
    except ValueError:
        tail = None
    if tail is None:
        ends = [end for _, end in await list_ranges(log.store, holder)]
        tail = Tail(first=max([holder.first, *ends]))
    return tail


def _check_hashes(tail: Tail, holder: Holder, entries: list[Entry]) -> None:
    """Raise Damaged for a slot altered since the tail was written: it must not be copied."""
    for entry, sha in zip(entries, tail.shas, strict=False):
        if entry.sha != sha:
            raise Damaged(entry.seq, holder.key(entry.seq))
