"""Verification that everything stored of a conversation is what was written."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from time import monotonic

from perdure.agent.loop.evolve import evolve
from perdure.agent.loop.state import State
from perdure.events.entry import Entry
from perdure.events.summary import EventSummary
from perdure.storage.errors import Altered, Damaged, Missing
from perdure.storage.keys import FORK, RESPONSES, STATE, TAIL
from perdure.storage.log.cached_state import CachedState, is_whole, parse_cached_state
from perdure.storage.log.fork import forked_seqs
from perdure.storage.log.inspection import Finding, Inspector
from perdure.storage.log.lineage import Holder, Lineage, find_holder, read_fork
from perdure.storage.log.reader import LogReader
from perdure.storage.log.segments import SEGMENT_SIZE, list_ranges, read_tail
from perdure.storage.log.state import load_cached_state
from perdure.storage.store import list_keys

MIN_CHECKED_SLOTS = 1000
"""The newest slots, which are checked whenever a conversation is opened again."""

QUICK_CHECK_SECONDS = 0.5
"""Seconds after which an opening checks no further older slots: thousands of a log in files."""

OLDER_PAGE = 250
"""Older slots that are checked at once, between two looks at the clock."""

ReportProgress = Callable[[int, int], None]
"""A callback with the number of slots checked so far, and of all slots."""


async def verify(
    log: LogReader, known_end: int = 0, progress: ReportProgress = lambda _, __: None
) -> AsyncIterator[Finding]:
    """Yield everything that is wrong with the conversation: each bad slot, and other objects.

    Slots are read from the store, never from a cache, a page at a time. `known_end` is the number
    of slots that the caller expects. Raises the errors of the store.
    """
    fresh = LogReader(log.store, log.user_id, log.conversation_id)
    try:
        lineage = await fresh.lineage()
    except Altered as error:
        yield Finding("beside", error.key, "it cannot be told what the conversation is a fork of")
        return
    caches = await _inspect_caches(fresh)
    stored = await fresh.end()  # read last: the caches speak of earlier writes
    for finding in caches.findings:
        yield finding
    end = max(caches.end, known_end, stored)
    async for finding in _verify_slots(fresh, end, stored, progress):
        yield finding
    async for finding in _verify_responses(fresh, lineage):
        yield finding


@dataclass(frozen=True)
class CheckedLog:
    """A log that can go on: its number of slots, and its cached state."""

    end: int
    cached: CachedState


async def check_integrity(log: LogReader, seconds: float = QUICK_CHECK_SECONDS) -> CheckedLog:
    """Raise Missing or Damaged if the conversation cannot go on because a slot was lost or altered.

    All slots must be listed. The newest are read from the store, and older ones until `seconds`
    have passed; those that no segment has are in the log's cache then.
    """
    deadline = monotonic() + seconds
    fresh = LogReader(log.store, log.user_id, log.conversation_id)
    lineage = await fresh.lineage()
    caches = await _inspect_caches(fresh)
    # Listed last: the caches speak of earlier writes.
    stored, gap = await fresh.end_and_gap(caches.end)
    if gap is not None or caches.end > stored:
        seq = stored if gap is None else gap
        raise Missing(seq, lineage[0].key(seq))
    inspector, first = Inspector(fresh), max(0, stored - MIN_CHECKED_SLOTS)
    log.remember(lineage, await _check_slots(inspector, first, stored, stored))
    while first > 0 and monotonic() < deadline:
        first, end = max(0, first - OLDER_PAGE), first
        await _check_slots(inspector, first, end, stored)
    return CheckedLog(stored, caches.cached)


async def _check_slots(inspector: Inspector, first: int, end: int, stored: int) -> list[Entry]:
    """Return the entries that had to be parsed. Raises Missing and Damaged."""
    page = await inspector.inspect_slots(first, end, stored)
    for finding in page.findings:
        if finding.is_slot:
            raise finding.error()
    return [slot.entry for slot in page.slots if slot.entry is not None]


@dataclass(frozen=True)
class _Caches:
    """The objects beside the events: how many slots they imply, and their faults."""

    end: int
    cached: CachedState
    findings: list[Finding]


async def _inspect_caches(log: LogReader) -> _Caches:
    holder = (await log.lineage())[0]
    body, ranges, forked, tail = await asyncio.gather(
        log.load_state(),
        list_ranges(log.store, holder),
        forked_seqs(log),
        _inspect_tail(log, holder),
    )
    cached = parse_cached_state(body)
    forked_end = max(forked, default=-1) + 1
    tail_end, findings = tail
    end = max([cached.state.next_seq, forked_end, tail_end, *(end for _, end in ranges)])
    if cached.state.next_seq == 0:
        findings = [*findings, _describe_missing_state(log, body, end)]
    return _Caches(end, cached, findings)


async def _inspect_tail(log: LogReader, holder: Holder) -> tuple[int, list[Finding]]:
    """Return how many slots the tail implies, and its fault."""
    try:
        tail = await read_tail(log.store, holder)
    except ValueError:
        detail = "the hashes of the newest events are damaged: delete it; it is made anew"
        return 0, [Finding("beside", holder.prefix + TAIL, detail)]
    return tail.end if tail else 0, []


def _describe_missing_state(log: LogReader, body: bytes | None, known_end: int) -> Finding:
    key = log.prefix + STATE
    if body is not None and not is_whole(body):
        detail = "the kept state was altered: delete it; it is made anew from the events"
        return Finding("beside", key, detail)
    reason = "there is no kept state" if body is None else "the kept state is another version's"
    detail = f"{reason}; other objects tell of {known_end} events"
    return Finding("note", key, f"{detail}: whether later ones were cut off cannot be told")


async def _verify_slots(
    log: LogReader, end: int, stored: int, progress: ReportProgress
) -> AsyncIterator[Finding]:
    inspector, hashes = Inspector(log), await _load_running_hashes(log)
    state: State | None = State()
    reported: set[Finding] = set()
    for first in range(0, end, SEGMENT_SIZE):
        page = await inspector.inspect_slots(first, min(first + SEGMENT_SIZE, end), stored)
        for finding in [*page.findings, *await inspector.inspect_blobs(page)]:
            if finding not in reported:  # of the slot that overlaps
                yield finding
        reported = set(page.findings)
        bad = {finding.seq for finding in page.findings}
        for slot in page.slots[1 if first else 0 :]:
            sha = page.original_sha(slot)
            # Without the original hash of a slot no later running hash is known.
            if slot.seq in bad and slot.seq not in page.expected:
                state = None
            # No more of the event than the running hash needs.
            bare = EventSummary(seq=slot.seq, kind="", source="", fingerprint="", tokens=0, sha=sha)
            state = state and evolve(state, bare)
            for end_of_hash, running_sha, key in hashes:
                if state and end_of_hash == slot.seq + 1 and running_sha != state.sha:
                    detail = (
                        f"its running hash is not that of the first {end_of_hash} events: it was "
                        "altered, or one of them that has no checksum was"
                    )
                    yield Finding("beside", key, detail)
        progress(min(first + SEGMENT_SIZE, end), end)


async def _load_running_hashes(log: LogReader) -> list[tuple[int, str, str]]:
    """Load numbers of events, the running hash over so many, and the key of what has it."""
    state = await load_cached_state(log)
    hashes = [(state.next_seq, state.sha, log.prefix + STATE)]
    for holder in (await log.lineage())[:-1]:
        fork = await read_fork(log.store, holder.prefix)
        assert fork is not None, "all but the last of a lineage are forks"
        hashes.append((fork.at + 1, fork.sha, holder.prefix + FORK))
    return hashes


async def _verify_responses(log: LogReader, lineage: Lineage) -> AsyncIterator[Finding]:
    for holder in lineage:
        prefix = holder.prefix + RESPONSES
        async for key in list_keys(log.store, prefix):
            digits = key.removeprefix(prefix).removesuffix(".json")
            if not digits.isdecimal() or find_holder(lineage, int(digits)) != holder:
                continue
            try:
                await log.read_response(int(digits))
            except Damaged as error:
                detail = "the recorded answer of the model cannot be read"
                yield Finding("response", key, detail, error.seq)
