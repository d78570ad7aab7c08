"""Holding the slots of a log against all that is known of them.

Three things tell what a slot should hold: its own checksum, the entry behind it, which names its
hash, and the segments and the tail, which hold copies and hashes.
"""

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Literal, TypeAlias

from events.entry import Entry
from storage.errors import Altered, Damaged, Missing
from storage.keys import TAIL, segment_key
from storage.lineage import Holder, holder_of
from storage.reader import LogReader, parsed
from storage.segments import SIZE, ranges, segment_in, sha_of, tail_of

Kind: TypeAlias = Literal["missing", "damaged", "altered", "blob", "response", "beside", "note"]
"""`missing`, `damaged` and `altered` are slots. What is `beside` the events can be made anew from
them, and a `note` is no damage: it says what cannot be told."""

AT_ONCE = 32
BLOBS_AT_ONCE = 4
KNOWN_PAGES = 8
"""Thousands of slots of which the hashes are kept in mind: of one page in every generation."""

_BLOB = re.compile(rb'"(blobs/[0-9a-f]{64})"')


@dataclass(frozen=True)
class Finding:
    """What is wrong with the object at `key`, which slot `seq` needs, where it is a slot's."""

    kind: Kind
    key: str
    what: str
    seq: int | None = None

    @property
    def is_slot(self) -> bool:
        return self.kind in ("missing", "damaged", "altered")

    def error(self) -> Missing | Damaged:
        """As a step that reads the slot would meet it."""
        assert self.seq is not None, "it is a slot's"
        error = Missing if self.kind == "missing" else Damaged
        return error(self.seq, self.key)


@dataclass(frozen=True)
class Seen:
    """A slot as it was found; without `sha` there is no reading it."""

    seq: int
    key: str
    sha: str = ""
    after: str = ""
    blobs: tuple[str, ...] = ()
    fault: Finding | None = None


@dataclass(frozen=True)
class Witness:
    """What a slot should hold, and the key of the object that says so."""

    sha: str
    key: str


@dataclass
class Page:
    """Some slots, what should be in them, and what is wrong with those and with what tells of it.

    The last entry of the page before is the first one's `before`.
    """

    slots: list[Seen]
    witnesses: dict[int, Witness]
    findings: list[Finding]

    def sha(self, slot: Seen) -> str:
        """The hash of what was once written there; empty where nobody knows."""
        witness = self.witnesses.get(slot.seq)
        return witness.sha if witness else slot.sha


@dataclass
class Inspector:
    """Reads the objects themselves: what a cache knows of a slot is not what is stored there."""

    log: LogReader
    _segments: dict[tuple[Holder, int], dict[int, Witness]] = field(default_factory=dict)
    _ranges: dict[Holder, list[tuple[int, int]]] = field(default_factory=dict)
    _seen_blobs: set[str] = field(default_factory=set)

    async def page(self, first: int, end: int, stored: int) -> Page:
        """The slots from `first` on and before `end`, of a log with `stored` slots in the store."""
        witnesses: dict[int, Witness] = {}
        findings: list[Finding] = []
        for start in range(first - first % SIZE, end, SIZE):
            found, faults = await self._witnesses(start)
            witnesses |= found
            findings += faults
        slots: list[Seen] = []
        for start in range(first, end, AT_ONCE):
            seqs = range(start, min(start + AT_ONCE, end))
            slots += await asyncio.gather(*(self._look(seq, stored) for seq in seqs))
        page = Page(slots, witnesses, findings)
        findings += judged(page)
        return page

    async def blobs(self, page: Page) -> list[Finding]:
        """What is wrong with the blobs that the slots refer to, each told once."""
        new = {key: slot.seq for slot in reversed(page.slots) for key in slot.blobs}
        wanted = [(key, seq) for key, seq in new.items() if key not in self._seen_blobs]
        wanted.sort(key=itemgetter(1))
        self._seen_blobs |= new.keys()
        found: list[Finding | None] = []
        for start in range(0, len(wanted), BLOBS_AT_ONCE):
            some = wanted[start : start + BLOBS_AT_ONCE]
            found += await asyncio.gather(*(self._blob(key, seq) for key, seq in some))
        return [one for one in found if one]

    async def _blob(self, key: str, seq: int) -> Finding | None:
        place = holder_of(await self.log.lineage(), seq).prefix + key
        try:
            if await self.log.kept(key) is not None:
                return None
        except Altered as error:
            return Finding("blob", error.key, "a blob that it refers to was altered", seq)
        return Finding("blob", place, "a blob that it refers to is not there", seq)

    async def _look(self, seq: int, stored: int) -> Seen:
        holder = holder_of(await self.log.lineage(), seq)
        key = holder.key(seq)
        body = await self.log.store.read(key) if seq < stored else None
        if body is None:
            return Seen(seq, key, fault=Finding("missing", key, "there is no object", seq))
        try:
            entry: Entry = parsed(holder, seq, body)
        except Damaged:
            what = "the object is not what a log writes there, or its checksum does not hold"
            return Seen(seq, key, fault=Finding("damaged", key, what, seq))
        blobs = tuple(match.decode() for match in _BLOB.findall(body))
        return Seen(seq, key, sha_of(body), entry.after, blobs)

    async def _witnesses(self, start: int) -> tuple[dict[int, Witness], list[Finding]]:
        """What is on record for the thousand slots from `start` on; what is wrong with it, once."""
        found: dict[int, Witness] = {}
        findings: list[Finding] = []
        lineage = await self.log.lineage()
        for holder in lineage:
            if (holder, start) not in self._segments:
                while len(self._segments) > KNOWN_PAGES:
                    del self._segments[next(iter(self._segments))]
                told, faults = await self._read(holder, start)
                findings += faults
                # What one wrote behind the point of a fork is none of the fork's.
                own = {seq: one for seq, one in told.items() if holder_of(lineage, seq) is holder}
                self._segments[holder, start] = own
            found |= self._segments[holder, start]
        return found, findings

    async def _read(self, holder: Holder, start: int) -> tuple[dict[int, Witness], list[Finding]]:
        found: dict[int, Witness] = {}
        findings = []
        if holder not in self._ranges:
            self._ranges[holder] = await ranges(self.log.store, holder)
        for first, end in self._ranges[holder]:
            if not start <= first < start + SIZE:
                continue
            key = holder.prefix + segment_key(first, end)
            segment = await segment_in(self.log.store, holder, first, end)
            if segment is None:
                what = "the segment is damaged: delete it; it is a copy of the events"
                findings.append(Finding("beside", key, what))
                continue
            shas = map(sha_of, segment.bodies)
            found |= {seq: Witness(sha, key) for seq, sha in enumerate(shas, first)}
        key = holder.prefix + TAIL
        try:
            tail = await tail_of(self.log.store, holder)
        except ValueError:
            return found, findings  # told by `verify`, once
        if tail is not None:
            known = {seq: Witness(sha, key) for seq, sha in enumerate(tail.shas, tail.first)}
            found = known | found
        return found, findings


def judged(page: Page) -> Iterator[Finding]:
    """Which of these slots are not what was written there."""
    guilty: set[int] = set()
    for nth, slot in enumerate(page.slots):
        before = page.slots[nth - 1] if nth else None
        finding = _fault(slot, page.witnesses.get(slot.seq))
        if finding is None and before is not None and slot.after not in ("", before.sha):
            finding = _torn(before, slot, page, guilty)
        if finding is not None:
            assert finding.seq is not None, "it is a slot's"
            guilty.add(finding.seq)
            yield finding


def _fault(slot: Seen, witness: Witness | None) -> Finding | None:
    """What is wrong with the slot by itself."""
    copied = witness is not None and not witness.key.endswith(TAIL)
    copy = f"; {witness.key} has a copy of what was written" if witness and copied else ""
    if slot.fault is not None:
        fault = slot.fault
        return Finding(fault.kind, fault.key, f"{fault.what}{copy}", slot.seq)
    if witness is not None and witness.sha != slot.sha:
        what = copy or f"; {witness.key} has another hash of what was written"
        return Finding("altered", slot.key, f"the object was altered{what}", slot.seq)
    return None


def _torn(before: Seen, slot: Seen, page: Page, guilty: set[int]) -> Finding | None:
    """Of two entries that do not fit together, the one that nothing else speaks for."""
    if before.seq in guilty:
        return None
    if before.seq in page.witnesses:  # which it agrees with
        what = f"the object was altered: it follows another entry than the one of seq {before.seq}"
        return Finding("altered", slot.key, what, slot.seq)
    what = f"the object was altered: the entry of seq {slot.seq} was written behind another one"
    return Finding("altered", before.key, what, before.seq)
