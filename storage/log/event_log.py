"""Writing one conversation's log."""

import contextlib
import hashlib
from collections.abc import Callable, Sequence
from typing import TypeVar

from perdure.agent.calls.completion import Completion
from perdure.events.entry import Entry, Files, Origin, add_checksum, make_entry
from perdure.events.event import AnyEvent, UnknownEvent, answered_action_id, response_of
from perdure.events.usage import Usage
from perdure.storage.errors import Fenced, StoreError, StoreUnavailable, Superseded
from perdure.storage.keys import STATE, blob_key, event_id, event_key, response_key
from perdure.storage.log import segments
from perdure.storage.log.lineage import Holder, find_holder
from perdure.storage.log.reader import LogReader, ResponseRecord

Stored = TypeVar("Stored", Entry, ResponseRecord)


class EventLog(LogReader):
    """The events of a conversation, each in an object of its own that is written once.

    A slot belongs to one event and its key is known before the event is, so that the store itself
    settles every race: the first writer wins, and every reader sees the same ever after.
    """

    async def is_new(self, run: str) -> bool:
        """Check that nothing is stored of the conversation, so that `run` need not look for more.

        There is then no other conversation that it forks, and no segment.
        """
        if await self.store.list(self.prefix, limit=1):
            return False
        self._lineage = (Holder(self.user_id, self.conversation_id, 0),)
        self._note_tail(run, segments.Tail(first=0))
        return True

    async def append(
        self,
        events: Sequence[AnyEvent],
        *,
        base: int,
        origin: Origin,
        shared: bool = False,
        usage: Usage | None = None,
        files: Files | None = None,
        ends: Callable[[Entry], bool] | None = None,
    ) -> list[Entry]:
        """Write `events` into the slots from `base` on, once, however often this is called.

        Each event goes to the first slot that this walk comes to and that is

        * free: it is written there,
        * its own (same run, activity and position): what is stored is adopted, even where the
          bytes differ, for an earlier attempt wrote it. Where that attempt had another response of
          the model, the walk ends there: what follows does not belong to it.

        Any other slot is somebody else's:

        * another run's: Fenced,
        * of the same run, and it answers the same action as the event: the action is settled, so
          the walk ends there and nothing more is written,
        * of the same run otherwise: the walk goes on behind it where the base is `shared`, as
          parallel tools share theirs, and else ends in Superseded. It ends at an entry which
          `ends` the time for these events, so that a late attempt writes nothing behind it.

        Returns every entry from `base` to the last one written, adopted or settled, in order and
        whoever wrote them, so that who folds them leaves no hole. `usage` and `files` ride with the
        first event. The positions of `origin` are counted here.

        Also raises Damaged, StoreUnavailable (some may be written: call again with the same
        origin, nothing else) and StoreRefused.
        """
        walked: list[Entry] = []
        for position, event in enumerate(events):
            own = origin
            if own.position != position:
                own = origin.model_copy(update={"position": position})
            attachments = (usage, files) if position == 0 else (None, None)
            while not walked or walked[-1].origin != own:
                seq = base + len(walked)
                previous = walked[-1] if walked else await self._cached(seq - 1)
                draft = make_entry(seq, self._with_id(event, seq), own, *attachments)
                stored = await self._claim(draft, previous)
                walked.append(stored)
                if stored.origin == own:
                    if response_of(stored.event) != response_of(draft.event):
                        return walked
                    continue
                action_id = answered_action_id(event)
                if action_id is not None and action_id == answered_action_id(stored.event):
                    return walked
                if ends is not None and ends(stored):
                    return walked
                if not shared:
                    key = self.prefix + event_key(self.conversation_id, seq)
                    raise Superseded(key, stored.origin.activity)
        end = base + len(walked)
        if end >= segments.next_boundary(base):  # this walk has filled a segment
            with contextlib.suppress(StoreError):  # a later walk will seal it
                await self.seal(segments.next_boundary(end) - segments.SEGMENT_SIZE, run=origin.run)
        return walked

    async def find_answer(self, action_id: str, base: int, run: str) -> list[Entry] | None:
        """Return the entries from `base` to the one that answers the action; None if none does.

        Call it before doing what must not be done twice. Raises Fenced where another run than `run`
        has a slot of these: the earlier run must not continue from its events.
        """
        walked: list[Entry] = []
        while (stored := await self.find(base + len(walked))) is not None:
            if stored.origin.run != run:
                key = self.prefix + event_key(self.conversation_id, stored.seq)
                raise Fenced(key, stored.origin.run)
            walked.append(stored)
            if answered_action_id(stored.event) == action_id:
                return walked
        return None

    async def record_response(self, seq: int, completion: Completion, origin: Origin) -> Completion:
        """Store the completion of the step that begins at slot `seq`, before it becomes events.

        Returns the stored one, which differs if this run recorded one before. Raises Fenced if
        another run did, and Damaged.
        """
        record = ResponseRecord(origin=origin, completion=completion)
        key = self.prefix + response_key(seq)
        if await self.store.create(key, record.body()):
            return completion
        return _check_run(await self._read_record(seq), key, origin.run).completion

    async def store_blob(self, body: bytes) -> str:
        """Store bytes too long for an event; return their key, `blobs/{sha256}`."""
        key = blob_key(hashlib.sha256(body).hexdigest())
        await self.store.create(self.prefix + key, body)
        return key

    async def save_state(self, body: bytes) -> None:
        """Replace `base_state.json`, a cache of the folded events."""
        await self.store.replace(self.prefix + STATE, body)

    async def seal(self, end: int, closing: bool = False, run: str = "") -> None:
        """Make sure that every own slot before `end` is in a segment or in the tail.

        1,000 slots are copied into a segment once they are full, and with `closing` all. A repeated
        call reads the tail, unless this `run` left it in the cache, and only what is new. Nothing
        depends on segments; `verify` compares the slots with them. Raises Missing and Damaged where
        a slot cannot be read, or was altered.
        """
        holder = (await self.lineage())[0]
        cached = self.cache and self.cache.tails.get((self.user_id, self.conversation_id, run))
        tail = cached or await segments.load_tail(self.store, holder)
        while tail.first < end and (closing or segments.next_boundary(tail.first) <= end):
            segment_end = min(end, segments.next_boundary(tail.first))
            entries = await self.read(tail.first, segment_end - tail.first)
            tail = await segments.copy_segment(self.store, holder, tail, entries)
        if tail.end < end:
            new = await self.read(tail.end, end - tail.end)
            shas = (*tail.shas, *(entry.sha for entry in new))
            tail = segments.Tail(first=tail.first, shas=shas)
            await segments.write_tail(self.store, holder, tail)
        self._note_tail(run, tail)

    def _note_tail(self, run: str, tail: segments.Tail) -> None:
        if self.cache is not None and run:
            self.cache.tails.put((self.user_id, self.conversation_id, run), tail)

    async def _claim(self, own: Entry, previous: Entry | None) -> Entry:
        """Try to write `own` into its slot, behind `previous`; return what the slot holds then.

        A slot that a fork shares with another conversation is taken. Raises Fenced.
        """
        seq, candidate = own.seq, add_checksum(own, previous.sha if previous else "")
        lineage = await self.lineage()
        holder = find_holder(lineage, seq)
        key = holder.key(seq)
        if holder is lineage[0] and await self.store.create(key, candidate.body):
            return self._remember(holder, candidate)
        return _check_run(await self.find(seq), key, own.origin.run)

    def _with_id(self, event: AnyEvent, seq: int) -> AnyEvent:
        """Return the event with the id of its slot; one of an unknown kind is never rewritten."""
        if isinstance(event, UnknownEvent):
            return event
        return event.model_copy(update={"id": event_id(self.conversation_id, seq)})


def _check_run(stored: Stored | None, key: str, run: str) -> Stored:
    if stored is None:
        raise StoreUnavailable(f"{key} is taken, and yet it cannot be read: ask again.")
    if stored.origin.run != run:
        raise Fenced(key, stored.origin.run)
    return stored
