"""Pages of a log as JSON, made of the stored bytes: few of them are parsed."""

import json
from collections.abc import Collection
from dataclasses import dataclass, field

from perdure.storage.log.bodies import read_bodies
from perdure.storage.log.event_log import EventLog

MAX_SCANNED = 5000
"""Slots that one page looks at, where it has but some kinds of events."""

SCAN_SIZE = 1000


@dataclass(frozen=True)
class PageRange:
    """The slots that a page may have, at most `limit` of them: the first ones, or the last.

    `end` is the number of slots of the log. `until` is the slot behind the last one to look at.
    """

    first: int
    until: int
    end: int
    limit: int
    backwards: bool

    @classmethod
    def of_query(cls, after: int, before: int | None, end: int, limit: int) -> "PageRange":
        until = end if before is None else min(before, end)
        return cls(min(after + 1, until), until, end, limit, before is not None)


@dataclass
class _Page:
    """A page that grows: the items with their `seq`, and the slots that were looked at."""

    first: int
    until: int
    items: list[bytes] = field(default_factory=list)


async def read_page(log: EventLog, wanted: PageRange, kinds: Collection[str] = ()) -> bytes:
    """Read a page of the log, as an EventPage in JSON.

    Raises Missing or Damaged for a slot that cannot be read.
    """
    if not kinds:
        page = await _read_all(log, wanted)
    elif wanted.backwards:
        page = await _read_kinds_before(log, wanted, kinds)
    else:
        page = await _read_kinds_after(log, wanted, kinds)
    has_more = page.first > wanted.first if wanted.backwards else page.until < wanted.until
    return b'{"items":[%b],"from_seq":%d,"through_seq":%d,"end_seq":%d,"has_more":%b}' % (
        b",".join(page.items),
        page.first,
        page.until - 1,
        wanted.end,
        b"true" if has_more else b"false",
    )


async def _read_all(log: EventLog, wanted: PageRange) -> _Page:
    first, until = wanted.first, wanted.until
    if wanted.backwards:
        first = max(first, until - wanted.limit)
    until = min(until, first + wanted.limit)
    items = await _read_items(log, first, until)
    return _Page(first, first + len(items), items)


async def _read_kinds_after(log: EventLog, wanted: PageRange, kinds: Collection[str]) -> _Page:
    page = _Page(wanted.first, wanted.first)
    most = min(wanted.until, wanted.first + MAX_SCANNED)
    while page.until < most:
        items = await _read_items(log, page.until, min(most, page.until + SCAN_SIZE))
        if not items:
            break
        for item in items:
            page.until += 1
            if _kind_of(item) in kinds:
                page.items.append(item)
                if len(page.items) == wanted.limit:
                    return page
    return page


async def _read_kinds_before(log: EventLog, wanted: PageRange, kinds: Collection[str]) -> _Page:
    page = _Page(wanted.until, wanted.until)
    least = max(wanted.first, wanted.until - MAX_SCANNED)
    while page.first > least:
        start = max(least, page.first - SCAN_SIZE)
        for item in reversed(await _read_items(log, start, page.first)):
            page.first -= 1
            if _kind_of(item) in kinds:
                page.items.insert(0, item)
                if len(page.items) == wanted.limit:
                    return page
    return page


async def _read_items(log: EventLog, first: int, until: int) -> list[bytes]:
    """Read the entries of these slots, each with its `seq`."""
    items: list[bytes] = []
    while (seq := first + len(items)) < until:
        bodies = await read_bodies(log, seq, until - seq)
        if not bodies:
            break
        items += map(add_seq, range(seq, until), bodies)
    return items


def add_seq(seq: int, body: bytes) -> bytes:
    """Add the number of its slot to a stored entry."""
    return b'{"seq":%d,%b' % (seq, body[1:])


def _kind_of(item: bytes) -> str:
    kind: str = json.loads(item)["kind"]
    return kind
