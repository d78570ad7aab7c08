"""Logs and buckets that are wrong in ways that somebody might think of: the laws must find them."""

from collections.abc import Sequence
from typing import Any

from perdure.agent.calls.completion import Completion
from perdure.events.entry import Entry, Origin, make_entry
from perdure.events.event import AnyEvent
from perdure.storage.errors import Fenced, StoreUnavailable
from perdure.storage.keys import response_key
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.reader import ResponseRecord


class RandomKeys(EventLog):
    """Two writers of one slot write two objects, as with a random id in the key."""

    async def _claim(self, mine: Entry, before: Entry | None) -> Entry:
        held = await self.find(mine.seq)
        if held is not None and held.origin == mine.origin:
            return held
        key = f"{self.prefix}events/{mine.seq:06d}_{mine.sha}.json"
        await self.store.create(key, mine.body)
        return await super()._claim(mine, before)


class SkipsUnknownWrites(EventLog):
    """A log that takes the next slot after a write with unknown outcome, as if it had failed."""

    async def _claim(self, mine: Entry, before: Entry | None) -> Entry:
        try:
            return await super()._claim(mine, before)
        except StoreUnavailable:
            seq = mine.seq + 1
            event = self._with_id(mine.event, seq)
            return await super()._claim(make_entry(seq, event, mine.origin, mine.usage), before)


class ListsForTheEnd(EventLog):
    """A slot is looked for at the end of the listing, not at the base that the workflow gives."""

    async def append(self, events: Sequence[AnyEvent], *, base: int, **how: Any) -> list[Entry]:
        del base
        return await super().append(events, base=await self.end(), **how)


class IgnoresTheRun(EventLog):
    """A slot in the hands of another run is passed by."""

    async def _claim(self, mine: Entry, before: Entry | None) -> Entry:
        try:
            return await super()._claim(mine, before)
        except Fenced:
            held = await self.find(mine.seq)
            assert held is not None
            return held.model_copy(update={"origin": Origin(run=mine.origin.run, activity="?")})


class AdoptsAnything(EventLog):
    """A log that takes whatever is in the slot for its own, whoever wrote it."""

    async def _claim(self, mine: Entry, before: Entry | None) -> Entry:
        held = await super()._claim(mine, before)
        return held.model_copy(update={"origin": mine.origin})


class CachesItsOwnEntry(EventLog):
    """A log that caches the entry that it wanted to write, not the one that was written."""

    async def _claim(self, mine: Entry, before: Entry | None) -> Entry:
        held = await super()._claim(mine, before)
        if held.origin == mine.origin:
            self._remember((await self.lineage())[0], mine)
            return mine
        return held


class OverwritesResponse(EventLog):
    """A later answer of the model takes the place of the one on record."""

    async def record_response(self, seq: int, completion: Completion, origin: Origin) -> Completion:
        body = ResponseRecord(origin=origin, completion=completion).body()
        await self.store.replace(self.prefix + response_key(seq), body)
        return completion


class IgnoresRecordedResponse(EventLog):
    """A writer goes on with its own answer, although another one was recorded first."""

    async def record_response(self, seq: int, completion: Completion, origin: Origin) -> Completion:
        await super().record_response(seq, completion, origin)
        return completion


class SkipsRecordLookup(EventLog):
    """A retry does not look for the answer that was paid for."""

    async def read_response(self, seq: int) -> Completion | None:
        await super().read_response(seq)
        return None


class MixesResponses(EventLog):
    """An attempt goes on behind the first event of another attempt's answer."""

    async def _claim(self, mine: Entry, before: Entry | None) -> Entry:
        held = await super()._claim(mine, before)
        return held.model_copy(update={"event": mine.event}) if held.origin == mine.origin else held


class WritesSecondObservation(EventLog):
    """An answer is written though the action has one."""

    async def append(self, events: Sequence[AnyEvent], *, base: int, **how: Any) -> list[Entry]:
        walked = await super().append(events, base=base, **how)
        if walked[-1].origin.activity == how["origin"].activity:
            return walked
        return walked + await super().append(events, base=base + len(walked), **how)


BROKEN: tuple[type[EventLog], ...] = (
    RandomKeys,
    SkipsUnknownWrites,
    ListsForTheEnd,
    IgnoresTheRun,
    AdoptsAnything,
    CachesItsOwnEntry,
    OverwritesResponse,
    IgnoresRecordedResponse,
    SkipsRecordLookup,
    MixesResponses,
    WritesSecondObservation,
)
