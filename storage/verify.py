"""Whether all that is stored of a conversation is what was written."""

import contextlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from time import monotonic

from agent.evolve import evolve
from agent.state import State
from events.digest import Digest
from storage.errors import Altered, Damaged, Missing
from storage.fork import marked
from storage.inspection import Finding, Inspector
from storage.keys import FORK, RESPONSES, STATE, TAIL
from storage.lineage import Holder, Lineage, fork_in
from storage.listing import keys
from storage.reader import LogReader
from storage.segments import SIZE, ranges, tail_of
from storage.state import kept_state

LOOKED_AT = 1000
"""The newest slots that are looked at whenever a conversation is opened again."""

PATIENCE = 5.0
"""Seconds in which an opening looks at older ones too: all of a long log in files."""

Progress = Callable[[int, int], None]
"""Told how many slots have been looked at, and how many there are."""


@dataclass(frozen=True)
class Sum:
    """The running hash over the first `end` events, as the object at `key` has it."""

    end: int
    sha: str
    key: str


async def verify(
    log: LogReader, known: int = 0, progress: Progress = lambda _, __: None
) -> AsyncIterator[Finding]:
    """Everything that is wrong with the conversation: each bad slot, and what else there is.

    Slots are read from the store, whatever a cache holds, some at a time. `known` is how many
    there are as far as the caller knows. Raises the errors of the store.
    """
    fresh = LogReader(log.store, log.user_id, log.conversation_id)
    try:
        lineage = await fresh.lineage()
    except Altered as error:
        yield Finding("beside", error.key, "it cannot be told what the conversation is a fork of")
        return
    told, findings = await _beside(fresh, lineage)
    stored = await fresh.end()  # asked for last: what is told of was written before
    for finding in findings:
        yield finding
    async for finding in _slots(fresh, max(told, known, stored), stored, progress):
        yield finding
    async for finding in _responses(fresh, lineage):
        yield finding


async def must_be_whole(log: LogReader) -> None:
    """Raises Missing or Damaged where the conversation cannot go on: a slot is not what it was.

    All slots must be listed. The newest are read, and older ones as long as that is quick.
    """
    fresh = LogReader(log.store, log.user_id, log.conversation_id)
    lineage = await fresh.lineage()
    told, _ = await _beside(fresh, lineage)
    stored = await fresh.end()  # asked for last: what is told of was written before
    if (gap := await fresh.gap()) is not None or told > stored:
        seq = stored if gap is None else gap
        raise Missing(seq, lineage[0].key(seq))
    inspector, deadline = Inspector(fresh), monotonic() + PATIENCE
    for first in range(stored - stored % SIZE, -1, -SIZE):
        # One slot of the page before comes along: its successor names its hash.
        page = await inspector.page(max(0, first - 1), min(first + SIZE, stored), stored)
        for finding in page.findings:
            if finding.is_slot:
                raise finding.error()
        if stored - first >= LOOKED_AT and monotonic() > deadline:
            return


async def _beside(log: LogReader, lineage: Lineage) -> tuple[int, list[Finding]]:
    """How many slots are told of beside the events, and what is wrong with what tells of them."""
    holder = lineage[0]
    state = await kept_state(log)
    ends = [state.next_seq, *(end for _, end in await ranges(log.store, holder))]
    ends += [at + 1 for at in await marked(log)]
    findings: list[Finding] = []
    try:
        tail = await tail_of(log.store, holder)
        ends.append(tail.end if tail else 0)
    except ValueError:
        what = "the hashes of the newest events are damaged: delete it; it is made anew"
        findings.append(Finding("beside", holder.prefix + TAIL, what))
    if state.next_seq == 0:
        findings.append(await _without_state(log, holder, max(ends)))
    return max(ends), findings


async def _without_state(log: LogReader, holder: Holder, told: int) -> Finding:
    key = holder.prefix + STATE
    kept = await log.load_state()
    if kept is not None and not _is_json(kept):
        what = "the kept state cannot be read: delete it; it is made anew from the events"
        return Finding("beside", key, what)
    which = "there is no kept state" if kept is None else "the kept state is another version's"
    what = f"{which}; other objects tell of {told} events"
    return Finding("note", key, f"{what}: whether later ones were cut off cannot be told")


def _is_json(body: bytes) -> bool:
    with contextlib.suppress(ValueError):
        return isinstance(json.loads(body), dict)
    return False


async def _slots(
    log: LogReader, end: int, stored: int, progress: Progress
) -> AsyncIterator[Finding]:
    inspector, sums = Inspector(log), await _sums(log)
    state: State | None = State()
    reported: set[Finding] = set()
    for first in range(0, end, SIZE):
        page = await inspector.page(max(0, first - 1), min(first + SIZE, end), stored)
        for finding in [*page.findings, *await inspector.blobs(page)]:
            if finding not in reported:  # of the slot that comes along
                yield finding
        reported = set(page.findings)
        bad = {finding.seq for finding in page.findings}
        for slot in page.slots[1 if first else 0 :]:
            sha = page.sha(slot)
            # Where nobody knows what was there, nothing is known of the sum from there on.
            if slot.seq in bad and slot.seq not in page.witnesses:
                state = None
            state = state and evolve(state, _bare(slot.seq, sha))
            for one in sums:
                if state is not None and one.end == slot.seq + 1 and one.sha != state.sha:
                    yield Finding("beside", one.key, _mismatch(one))
        progress(min(first + SIZE, end), end)


def _mismatch(one: Sum) -> str:
    return (
        f"its running hash is not that of the first {one.end} events: it was altered, or one of "
        "them that has no checksum was"
    )


def _bare(seq: int, sha: str) -> Digest:
    """What the running hash takes of an event."""
    return Digest(seq=seq, kind="", source="", fingerprint="", size=0, sha=sha)


async def _sums(log: LogReader) -> list[Sum]:
    lineage = await log.lineage()
    state = await kept_state(log)
    sums = [Sum(state.next_seq, state.sha, lineage[0].prefix + STATE)]
    for holder in lineage[:-1]:
        fork = await fork_in(log.store, holder.prefix)
        assert fork is not None, "all but the last of a lineage are forks"
        sums.append(Sum(fork.at + 1, fork.sha, holder.prefix + FORK))
    return sums


async def _responses(log: LogReader, lineage: Lineage) -> AsyncIterator[Finding]:
    """Each recorded answer of a model that cannot be read."""
    upto: int | None = None
    for holder in lineage:
        prefix = holder.prefix + RESPONSES
        async for key in keys(log.store, prefix):
            digits = key.removeprefix(prefix).removesuffix(".json")
            if not digits.isdecimal() or not holder.first <= int(digits) < (
                upto or int(digits) + 1
            ):
                continue
            try:
                await log.recorded(int(digits))
            except Damaged as error:
                what = "the recorded answer of the model cannot be read"
                yield Finding("response", key, what, error.seq)
        upto = holder.first
