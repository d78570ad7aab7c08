"""Inspection of the slots of a log against everything that is known of them.

Three sources tell what a slot should hold: its own checksum, the entry behind it, which names its
hash, and the segments and the tail, which hold copies and hashes.
"""

import asyncio
import re
from collections.abc import Awaitable, Iterator
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from perdure.events.entry import Entry, read_previous_sha
from perdure.storage.cache import Cache
from perdure.storage.errors import Altered, BadSlot, Damaged, Missing
from perdure.storage.keys import TAIL, segment_key
from perdure.storage.log import segments
from perdure.storage.log.lineage import Holder, find_holder, parse_slot
from perdure.storage.log.reader import LogReader
from perdure.storage.parallel import map_parallel

FindingKind: TypeAlias = Literal[
    "missing", "damaged", "altered", "blob", "response", "beside", "note"
]
"""`missing`, `damaged` and `altered` are slots.

Objects `beside` the events can be rebuilt from them. A `note` is no damage: it says what cannot be
verified.
"""

PARALLEL_BLOB_READS = 4
MAX_CACHED_PAGES = 8
"""Segments (of up to 1,000 slots) whose hashes are cached: a page in every generation."""

_BLOB = re.compile(rb'"(blobs/[0-9a-f]{64})"')


@dataclass(frozen=True)
class Finding:
    """A fault of the object at `key`; `seq` is the slot that needs it, if there is one."""

    kind: FindingKind
    key: str
    detail: str
    seq: int | None = None

    @property
    def is_slot(self) -> bool:
        return self.kind in ("missing", "damaged", "altered")

    def error(self) -> BadSlot:
        """Build the error that a step reading this slot would raise."""
        assert self.seq is not None, "it is a slot's"
        error = Missing if self.kind == "missing" else Damaged
        return error(self.seq, self.key)


@dataclass(frozen=True)
class InspectedSlot:
    """A slot as read from the store; without `sha` it cannot be read.

    A `problem` is what is wrong with it by itself, or by its expected hash.
    """

    seq: int
    key: str
    sha: str = ""
    previous_sha: str = ""
    blobs: tuple[str, ...] = ()
    problem: Finding | None = None
    entry: Entry | None = None
    """What it holds, unless a segment has the same bytes: then nobody needs to parse them."""


@dataclass(frozen=True)
class ExpectedHash:
    """The hash that a slot should have, and the key of the object that says so."""

    sha: str
    key: str


@dataclass
class Page:
    """A range of slots, their expected hashes, and all findings about either."""

    slots: list[InspectedSlot]
    expected: dict[int, ExpectedHash]
    findings: list[Finding]

    def original_sha(self, slot: InspectedSlot) -> str:
        """Return the hash of what was once written there; empty if nobody knows."""
        expected = self.expected.get(slot.seq)
        return expected.sha if expected else slot.sha


@dataclass
class Inspector:
    """A reader of the stored objects themselves, never of a cache."""

    log: LogReader
    _pages: Cache[tuple[Holder, int], dict[int, ExpectedHash]] = field(
        default_factory=lambda: Cache(MAX_CACHED_PAGES)
    )
    _ranges: dict[Holder, list[tuple[int, int]]] = field(default_factory=dict)
    _seen_blobs: set[str] = field(default_factory=set)

    async def inspect_slots(self, first: int, end: int, stored: int) -> Page:
        """Inspect the slots from the one before `first` up to `end`; the store has `stored`.

        The successor of a slot names its hash, so pages overlap by one.
        """
        first = max(0, first - 1)
        expected: dict[int, ExpectedHash] = {}
        findings: list[Finding] = []
        for start in range(first - first % segments.SEGMENT_SIZE, end, segments.SEGMENT_SIZE):
            hashes, problems = await self._expected_hashes(start)
            expected |= hashes
            findings += problems

        def inspect(seq: int) -> Awaitable[InspectedSlot]:
            return self._inspect_slot(seq, stored, expected.get(seq))

        async with aclosing(map_parallel(inspect, range(first, end))) as inspecting:
            slots = [slot async for slot in inspecting]
        page = Page(slots, expected, findings)
        findings += _find_altered(page)
        return page

    async def inspect_blobs(self, page: Page) -> list[Finding]:
        """Inspect the blobs that the slots refer to; report each fault once."""
        seqs = {key: slot.seq for slot in reversed(page.slots) for key in slot.blobs}
        unseen = sorted(seqs.keys() - self._seen_blobs, key=lambda key: (seqs[key], key))
        self._seen_blobs |= seqs.keys()
        findings: list[Finding | None] = []
        for start in range(0, len(unseen), PARALLEL_BLOB_READS):
            keys = unseen[start : start + PARALLEL_BLOB_READS]
            findings += await asyncio.gather(*(self._check_blob(key, seqs[key]) for key in keys))
        return [finding for finding in findings if finding]

    async def _check_blob(self, key: str, seq: int) -> Finding | None:
        blob_key = find_holder(await self.log.lineage(), seq).prefix + key
        try:
            if await self.log.read_blob(key) is not None:
                return None
        except Altered as error:
            return Finding("blob", error.key, "a blob that it refers to was altered", seq)
        return Finding("blob", blob_key, "a blob that it refers to is not there", seq)

    async def _inspect_slot(
        self, seq: int, stored: int, expected: ExpectedHash | None
    ) -> InspectedSlot:
        holder = find_holder(await self.log.lineage(), seq)
        key = holder.key(seq)
        copy = ""
        if expected is not None and not expected.key.endswith(TAIL):
            copy = f"; {expected.key} has a copy of what was written"
        body = await self.log.store.read(key) if seq < stored else None
        if body is None:
            problem = Finding("missing", key, f"there is no object{copy}", seq)
            return InspectedSlot(seq, key, problem=problem)
        blobs = tuple(match.decode() for match in _BLOB.findall(body))
        if copy and expected is not None and expected.sha == segments.hash_body(body):
            previous_sha = read_previous_sha(seq, body)
            if previous_sha is not None:
                return InspectedSlot(seq, key, expected.sha, previous_sha, blobs)
        try:
            entry = parse_slot(holder, seq, body)
        except Damaged:
            detail = "the object is not what a log writes there, or its checksum does not hold"
            return InspectedSlot(seq, key, problem=Finding("damaged", key, detail + copy, seq))
        slot = InspectedSlot(seq, key, entry.sha, entry.previous_sha, blobs, entry=entry)
        if expected is None or expected.sha == entry.sha:
            return slot
        detail = copy or f"; {expected.key} has another hash of what was written"
        problem = Finding("altered", key, f"the object was altered{detail}", seq)
        return replace(slot, problem=problem)

    async def _expected_hashes(self, start: int) -> tuple[dict[int, ExpectedHash], list[Finding]]:
        """Load the hashes on record for the 1,000 slots from `start` on, with their faults once."""
        expected: dict[int, ExpectedHash] = {}
        findings: list[Finding] = []
        lineage = await self.log.lineage()
        for holder in lineage:
            own = self._pages.get((holder, start))
            if own is None:
                hashes, problems = await self._read_expected(holder, start)
                findings += problems
                # Slots that the parent wrote behind the fork point are not the fork's.
                own = {n: sha for n, sha in hashes.items() if find_holder(lineage, n) is holder}
                self._pages.put((holder, start), own)
            expected |= own
        return expected, findings

    async def _read_expected(
        self, holder: Holder, start: int
    ) -> tuple[dict[int, ExpectedHash], list[Finding]]:
        expected: dict[int, ExpectedHash] = {}
        findings = []
        if holder not in self._ranges:
            self._ranges[holder] = await segments.list_ranges(self.log.store, holder)
        for first, end in self._ranges[holder]:
            if not start <= first < start + segments.SEGMENT_SIZE:
                continue
            key = holder.prefix + segment_key(first, end)
            bodies = await segments.read_segment(self.log.store, holder, first, end)
            if not bodies:
                detail = "the segment is damaged: delete it; it is a copy of the events"
                findings.append(Finding("beside", key, detail))
                continue
            slots = enumerate(bodies, first)
            expected |= {seq: ExpectedHash(segments.hash_body(body), key) for seq, body in slots}
        with suppress(ValueError):  # `verify` reports it, once
            if tail := await segments.read_tail(self.log.store, holder):
                key = holder.prefix + TAIL
                shas = enumerate(tail.shas, tail.first)
                expected = {seq: ExpectedHash(sha, key) for seq, sha in shas} | expected
        return expected, findings


def _find_altered(page: Page) -> Iterator[Finding]:
    """Yield the slots that do not hold what was written there."""
    altered: set[int] = set()
    for index, slot in enumerate(page.slots):
        before = page.slots[index - 1] if index else None
        finding = slot.problem
        if finding is None and before is not None and slot.previous_sha not in ("", before.sha):
            finding = _check_chain(before, slot, page, altered)
        if finding is not None:
            assert finding.seq is not None, "it is a slot's"
            altered.add(finding.seq)
            yield finding


def _check_chain(
    before: InspectedSlot, slot: InspectedSlot, page: Page, altered: set[int]
) -> Finding | None:
    """Blame one of two entries that do not fit together: the one no other source confirms."""
    if before.seq in altered:
        return None
    if before.seq in page.expected:  # and it agrees with that
        blamed, reason = slot, f"it follows another entry than the one of seq {before.seq}"
    else:
        blamed, reason = before, f"the entry of seq {slot.seq} was written behind another one"
    return Finding("altered", blamed.key, f"the object was altered: {reason}", blamed.seq)
