"""The shared log of one discussion: append, prune, read."""

import asyncio
import contextlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import ValidationError

from perdure.agent.discussion.log_state import (
    LogState,
    apply_events,
    apply_pruning,
    check_writer,
)
from perdure.agent.discussion.pruning import Automatic, PrunePolicy, plan_pruning
from perdure.errors import Conflict
from perdure.events.discussion import DiscussionEvent, MillisecondTimestamp
from perdure.events.entry import Entry, Origin, add_checksum, make_entry, parse_entry
from perdure.events.event import UnknownEvent
from perdure.storage import keys
from perdure.storage.discussions.archive import Pruning, to_ranges
from perdure.storage.errors import Altered, Damaged, Missing, StoreError, StoreUnavailable
from perdure.storage.parallel import map_parallel
from perdure.storage.store import Store, list_keys

SEARCH_PAGE = 16
"""Events that a repeated append reads at a time."""

SAVE_INTERVAL = 50
"""Events after which the state is saved, so that a cold reader reads no more of them."""


class SharedLog:
    """The events of one session, each in an object of its own that is written once.

    The key of a slot is known before its event is, so that the store settles every race: writers
    walk from slot to slot, and none is left out. The state is a fold of events and prunings;
    `state.json` is a cache of it.
    """

    def __init__(self, store: Store, user_id: str, session_id: str) -> None:
        self.store = store
        self.user_id = user_id
        self.session_id = session_id
        self.prefix = keys.discussion_prefix(user_id, session_id)
        self.state = LogState()
        self._saved = -SAVE_INTERVAL
        self._is_loaded = False
        self._lock = asyncio.Lock()

    async def refresh(self) -> LogState:
        """Read what is new, and return the state. Raises Missing, Damaged, Altered."""
        async with self._lock:
            return await self._refresh()

    async def append(self, draft: DiscussionEvent, after: int | None = None) -> DiscussionEvent:
        """Write the event into the first free slot; the sequence of `draft` does not count.

        Where a slot behind `after` has an event of the same id, that one is returned, and nothing
        is written. Raises Forbidden if its speaker may not write it, Conflict if the id is that of
        another event, and what `refresh` raises.
        """
        async with self._lock:
            await self._refresh()
            written = None if after is None else await self._find(draft, after)
            event = written or await self._write(draft)
            await self._prune(Automatic(), event.timestamp, self.state.end)
            await self._save()
            return event

    async def prune(
        self, policy: PrunePolicy, timestamp: MillisecondTimestamp, through: int | None = None
    ) -> Pruning | None:
        """Take events out of sight that are not newer than `through`; None if there are none.

        Their objects stay. The same call, repeated, finds nothing more.
        """
        async with self._lock:
            state = await self._refresh()
            return await self._prune(policy, timestamp, through or state.end)

    async def read(self, sequences: Iterable[int]) -> list[DiscussionEvent]:
        """Read the events, visible or not. Raises Missing, Damaged."""
        return [event async for _, event in map_parallel(self._read, sequences)]

    async def read_prunings(self, after: int, limit: int) -> list[Pruning]:
        """Read the manifest of what was pruned, from the pruning after this number on."""
        names = await self.store.list(
            self.prefix + keys.ARCHIVE, self.prefix + keys.archive_key(after), limit
        )
        return [pruning async for pruning in map_parallel(self._read_pruning, names)]

    async def _refresh(self) -> LogState:
        if not self._is_loaded:
            self.state = await self._load_cached() or self.state
            self._saved = self.state.end
            self._is_loaded = True
        # The prunings first: what they name is then among the events that are read.
        known = self.prefix + keys.archive_key(self.state.prunings)
        names = [key async for key in list_keys(self.store, self.prefix + keys.ARCHIVE, known)]
        await self._read_new()
        for pruning in [item async for item in map_parallel(self._read_pruning, names)]:
            self.state = apply_pruning(self.state, pruning.number, pruning.sequences())
        return self.state

    async def _read_new(self) -> None:
        first = self.state.end + 1
        after = f"{self.prefix}{keys.start_after(first)}"
        listed = [key async for key in list_keys(self.store, self.prefix + keys.EVENTS, after)]
        # A store may list a slot and not the one before, which was written meanwhile.
        last = max((_sequence_of(key) for key in listed), default=first - 1)
        new: list[tuple[DiscussionEvent, str]] = []
        sha = self.state.sha
        async for entry, event in map_parallel(self._read, range(first, last + 1)):
            if entry.previous_sha != sha:
                raise Altered(self._key(event.sequence - 1))
            sha = entry.sha
            new.append((event, sha))
        if new:
            self.state = apply_events(self.state, new)

    async def _find(self, draft: DiscussionEvent, after: int) -> DiscussionEvent | None:
        """Find the event of the same id behind slot `after`; most stand in the next few."""
        end = self.state.end + 1
        for first in range(after + 1, end, SEARCH_PAGE):
            for event in await self.read(range(first, min(first + SEARCH_PAGE, end))):
                if event.event_id == draft.event_id:
                    return _check_same(event, draft)
        return None

    async def _write(self, draft: DiscussionEvent) -> DiscussionEvent:
        while True:
            check_writer(self.state, draft.type, draft.speaker)
            before = self.state.end
            event = draft.model_copy(update={"sequence": before + 1, "session_id": self.session_id})
            entry = self._make_entry(event)
            if await self.store.create(self._key(event.sequence), entry.body):
                event = self._parse(entry)
                self.state = apply_events(self.state, [(event, entry.sha)])
                return event
            await self._refresh()
            if self.state.end == before:
                raise StoreUnavailable(
                    f"{self._key(before + 1)} is taken and not there: ask again."
                )
            if (written := await self._find(draft, before)) is not None:
                return written

    async def _prune(self, policy: PrunePolicy, timestamp: str, through: int) -> Pruning | None:
        while True:
            looked_at = [item for item in self.state.visible if item[0] <= through]
            sequences = plan_pruning(looked_at, policy)
            if not sequences:
                return None
            pruning = Pruning(
                number=self.state.prunings + 1,
                policy=policy,
                through=through,
                timestamp=timestamp,
                ranges=to_ranges(sequences),
            )
            key = self.prefix + keys.archive_key(pruning.number)
            if await self.store.create(key, pruning.model_dump_json(by_alias=True).encode()):
                self.state = apply_pruning(self.state, pruning.number, sequences)
                return pruning
            before = self.state.prunings
            await self._refresh()
            if self.state.prunings == before:
                raise StoreUnavailable(f"{key} is taken and not there: ask again.")

    def _make_entry(self, event: DiscussionEvent) -> Entry:
        raw = {"kind": event.kind, **event.to_json()}
        stored = UnknownEvent(kind=event.kind, raw=raw)
        origin = Origin(run=self.session_id, activity=event.event_id)
        return add_checksum(make_entry(event.sequence, stored, origin), self.state.sha)

    async def _read(self, sequence: int) -> tuple[Entry, DiscussionEvent]:
        body = await self.store.read(self._key(sequence))
        if body is None:
            raise Missing(sequence, self._key(sequence))
        try:
            entry = parse_entry(sequence, body)
            return entry, self._parse(entry)
        except ValueError as error:
            raise Damaged(sequence, self._key(sequence)) from error

    def _parse(self, entry: Entry) -> DiscussionEvent:
        """Parse the event of an entry as it is stored. Raises ValueError."""
        stored = parse_entry(entry.seq, entry.body).event
        if not isinstance(stored, UnknownEvent) or stored.raw.get("sequence") != entry.seq:
            raise ValueError("this is no event of this slot")
        return DiscussionEvent.model_validate(stored.raw)

    async def _read_pruning(self, key: str) -> Pruning:
        body = await self.store.read(key)
        try:
            return Pruning.model_validate_json(body or b"")
        except ValidationError as error:
            raise Altered(key) from error

    async def _load_cached(self) -> LogState | None:
        body = await self.store.read(self.prefix + keys.DISCUSSION_STATE)
        with contextlib.suppress(ValidationError):
            return None if body is None else LogState.model_validate_json(body)
        return None

    async def _save(self) -> None:
        if self.state.end - self._saved < SAVE_INTERVAL:
            return
        self._saved = self.state.end
        with contextlib.suppress(StoreError):  # a later writer saves it
            body = self.state.model_dump_json().encode()
            await self.store.replace(self.prefix + keys.DISCUSSION_STATE, body)

    def _key(self, sequence: int) -> str:
        return self.prefix + keys.shared_event_key(sequence)


async def find_start(log: SharedLog, event_id: str) -> int:
    """Return the end of the log before the event of an id that its writer chose.

    It is noted once, before the event is written: whoever repeats the append looks behind it.
    """
    key = log.prefix + keys.chosen_id_key(event_id)
    body = await log.store.read(key)
    if body is None:
        note = json.dumps({"after": (await log.refresh()).end}).encode()
        body = note if await log.store.create(key, note) else await log.store.read(key)
    try:
        noted: Any = json.loads(body or b"")
        return int(noted["after"])
    except (ValueError, KeyError, TypeError) as error:
        raise Altered(key) from error


def select_visible(state: LogState, limit: int, types: Sequence[str] | None = None) -> list[int]:
    """Return the sequences of the newest visible events, in order."""
    visible = [sequence for sequence, type_ in state.visible if types is None or type_ in types]
    return visible[max(0, len(visible) - limit) :]


def _sequence_of(key: str) -> int:
    return int(key.rpartition("/")[2].partition(".")[0])


def _check_same(stored: DiscussionEvent, draft: DiscussionEvent) -> DiscussionEvent:
    if (stored.type, stored.speaker) != (draft.type, draft.speaker):
        raise Conflict(f"The id {draft.event_id} is that of a {stored.type} of {stored.speaker}.")
    return stored
