"""Writing one conversation's log."""

import contextlib
import hashlib
from collections.abc import Sequence
from typing import Any

from agent.completion import Completion
from events.entry import Entry, Origin, checked, entry
from events.event import AnyEvent, UnknownEvent
from events.files import Files
from events.tools import AgentErrorEvent, ObservationEvent, UserRejectObservation
from events.usage import Usage
from storage.errors import Fenced, StoreError, StoreUnavailable, Superseded
from storage.keys import STATE, blob_key, event_id, event_key, response_key
from storage.lineage import holder_of
from storage.reader import LogReader
from storage.record import Record
from storage.sealing import seal
from storage.segments import SIZE, next_boundary

ANSWERS = (ObservationEvent, AgentErrorEvent, UserRejectObservation)
ANSWER_KINDS = tuple(answer.__name__ for answer in ANSWERS)


class EventLog(LogReader):
    """One conversation's events, each in an object of its own that is written once.

    A slot belongs to one event and its key is known before the event is, so that the store itself
    settles every race: the first writer wins, and every reader sees the same ever after.
    """

    async def append(
        self,
        events: Sequence[AnyEvent],
        *,
        base: int,
        origin: Origin,
        shared: bool = False,
        usage: Usage | None = None,
        files: Files | None = None,
    ) -> list[Entry]:
        """Write `events` into the slots from `base` on, once, however often this is called.

        Each event goes to the first slot that this walk comes to and that is

        * free: it is written there,
        * its own (same run, activity and position): what is stored is adopted, even where the
          bytes differ, for an earlier attempt wrote it.

        Any other slot is somebody else's:

        * another run's: Fenced,
        * of the same run, and it answers the same action as the event: the action is settled, so
          the walk ends there and nothing more is written,
        * of the same run otherwise: the walk goes on behind it where the base is `shared`, as
          parallel tools share theirs, and else ends in Superseded.

        Returns every entry from `base` to the last one written, adopted or settled, in order and
        whoever wrote them, so that who folds them leaves no hole. `usage` and `files` ride with the
        first event. The positions of `origin` are counted here.

        Also raises Damaged, StoreUnavailable (some may be written: call again with the same
        origin, nothing else) and StoreRefused.
        """
        walked: list[Entry] = []
        for position, event in enumerate(events):
            mine = origin.model_copy(update={"position": position})
            riders = (usage, files) if position == 0 else (None, None)
            while not walked or walked[-1].origin != mine:
                seq = base + len(walked)
                before = walked[-1] if walked else await self._cached(seq - 1)
                placed = entry(seq, self._placed(event, seq), mine, *riders)
                held = await self._claim(placed, before)
                walked.append(held)
                if held.origin != mine and settles(held.event, event):
                    return walked
                if held.origin != mine and not shared:
                    key = self._prefix + event_key(self.conversation_id, held.seq)
                    raise Superseded(key, held.origin.activity)
        await self._seal_what_is_full(base, base + len(walked))
        return walked

    async def settled(self, action_id: str, base: int) -> list[Entry] | None:
        """The entries from `base` to the one that answers the action; None where none does.

        To be asked before anything is done that must not be done twice. Raises Fenced where another
        run begins on the way: what stands behind that is not for the run before to go on from.
        """
        walked: list[Entry] = []
        while (held := await self.find(base + len(walked))) is not None:
            if walked and held.origin.run != walked[0].origin.run:
                key = self._prefix + event_key(self.conversation_id, held.seq)
                raise Fenced(key, held.origin.run)
            walked.append(held)
            if answered(held.event) == action_id:
                return walked
        return None

    async def record(self, seq: int, completion: Completion, origin: Origin) -> Completion:
        """Keep the completion of the step that begins at slot `seq`, before it becomes events.

        Returns the one that is stored, which is another where this run recorded one before.
        Raises Fenced where another run did, and Damaged.
        """
        mine = Record(origin=origin, completion=completion)
        key = self._prefix + response_key(seq)
        if await self.store.create(key, mine.body()):
            return completion
        held = await self._record(seq)
        if held is None:
            raise _vanished(key)
        if held.origin.run != origin.run:
            raise Fenced(key, held.origin.run)
        return held.completion

    async def keep(self, body: bytes) -> str:
        """Store bytes too long for an event; the key to name them by is `blobs/{sha256}`."""
        key = blob_key(hashlib.sha256(body).hexdigest())
        await self.store.create(self._prefix + key, body)
        return key

    async def save_state(self, body: bytes) -> None:
        """Replace `base_state.json`, a cache of what the events say."""
        await self.store.replace(self._prefix + STATE, body)

    async def _seal_what_is_full(self, base: int, end: int) -> None:
        """Make a segment where this walk has filled one: whatever keeps it from it, others will."""
        if end >= next_boundary(base):
            with contextlib.suppress(StoreError):
                await seal(self, next_boundary(end) - SIZE)

    async def _claim(self, mine: Entry, before: Entry | None) -> Entry:
        """What its slot holds after trying to write `mine` into it, behind `before`. Raises Fenced.

        A slot that a fork has from another conversation is taken.
        """
        seq, wanted = mine.seq, checked(mine, before.sha if before else "")
        lineage = await self.lineage()
        holder = holder_of(lineage, seq)
        key = holder.key(seq)
        if holder is lineage[0] and await self.store.create(key, wanted.body):
            return self._remember(holder, wanted)
        held = await self.find(seq)
        if held is None:
            raise _vanished(key)
        if held.origin.run != mine.origin.run:
            raise Fenced(key, held.origin.run)
        return held

    def _placed(self, event: AnyEvent, seq: int) -> AnyEvent:
        """The event with the id of its slot; one of an unknown kind is never rewritten."""
        if isinstance(event, UnknownEvent):
            return event
        return event.model_copy(update={"id": event_id(self.conversation_id, seq)})


def answered(event: AnyEvent) -> str | None:
    """The id of the action that the event answers, also where a newer writer wrote it."""
    if isinstance(event, ANSWERS):
        return event.action_id
    if isinstance(event, UnknownEvent) and event.kind in ANSWER_KINDS:
        action_id: Any = event.raw.get("action_id")
        return action_id if isinstance(action_id, str) else None
    return None


def settles(held: AnyEvent, mine: AnyEvent) -> bool:
    """Whether both answer the same action, so that only one of them may stand."""
    action_id = answered(mine)
    return action_id is not None and answered(held) == action_id


def _vanished(key: str) -> StoreUnavailable:
    return StoreUnavailable(f"{key} is taken, and yet it cannot be read: ask again.")
