"""Listing the slots that a conversation has objects for."""

from collections.abc import Iterator
from contextlib import aclosing
from itertools import pairwise

from perdure.storage.keys import EVENTS, LAST_SEQ, start_after
from perdure.storage.log.lineage import Holder
from perdure.storage.parallel import map_parallel
from perdure.storage.store import KEYS_PER_PAGE, Store, list_keys

PARALLEL_PAGES = 4
"""Pages of a listing that are read at once."""


async def list_seqs(store: Store, holder: Holder, first: int, known_end: int = 0) -> list[int]:
    """List the slots from `first` on that have an object which a log may have written.

    The caller knows of slots up to `known_end`: their pages are read at once. A wrong number
    costs time alone.
    """

    async def list_part(part: tuple[int, int]) -> list[int]:
        return await _list_range(store, holder, *part)

    parts = list(_split(first, known_end))
    async with aclosing(map_parallel(list_part, parts, most=PARALLEL_PAGES)) as listing:
        return [seq async for seqs in listing for seq in seqs]


def _split(first: int, known_end: int) -> Iterator[tuple[int, int]]:
    """Split the slots from `first` on into pages; the last part has all that follow."""
    end = LAST_SEQ + 1
    starts = range(first, min(max(first + 1, known_end), end), KEYS_PER_PAGE)
    return pairwise([*starts, end])


async def _list_range(store: Store, holder: Holder, first: int, end: int) -> list[int]:
    seqs: list[int] = []
    after = holder.prefix + start_after(first)
    async with aclosing(list_keys(store, holder.prefix + EVENTS, after)) as listing:
        async for key in listing:
            digits = key.rpartition("/")[2][:6]
            if not digits.isdecimal():
                continue
            if (seq := int(digits)) >= end:
                break
            if key == holder.key(seq):
                seqs.append(seq)
                if seq == end - 1:  # another page has none of these
                    break
    return seqs
