"""Logs of discussions that are wrong in ways that somebody might think of."""

from typing import Any

from perdure.agent.discussion.log_state import LogState, apply_events, apply_pruning, check_writer
from perdure.agent.discussion.pruning import PrunePolicy
from perdure.events.discussion import DiscussionEvent
from perdure.storage import keys
from perdure.storage.discussions.archive import Pruning
from perdure.storage.discussions.shared_log import SharedLog
from perdure.storage.errors import StoreUnavailable
from perdure.storage.store import list_keys


class SearchesNothing(SharedLog):
    """A repeated append does not look for what an earlier attempt has written."""

    async def _find(self, draft: DiscussionEvent, after: int) -> DiscussionEvent | None:
        await super()._find(draft, after)
        return None


class ForgetsGrants(SharedLog):
    """A writer who lost a slot takes the next one, whatever was written meanwhile."""

    async def _write(self, draft: DiscussionEvent) -> DiscussionEvent:
        check_writer(self.state, draft.type, draft.speaker)
        as_system = draft.model_copy(update={"type": "SYSTEM", "speaker": "system"})
        self.draft = draft if draft.type == "SPEECH" else None
        return await super()._write(as_system if self.draft else draft)

    def _make_entry(self, event: DiscussionEvent) -> Any:
        if self.draft is not None:
            event = event.model_copy(update={"type": "SPEECH", "speaker": self.draft.speaker})
        return super()._make_entry(event)


class OverwritesEvents(SharedLog):
    """An event takes the place of another one."""

    async def _write(self, draft: DiscussionEvent) -> DiscussionEvent:
        event = draft.model_copy(update={"sequence": self.state.end + 1})
        entry = self._make_entry(event)
        await self.store.replace(self._key(event.sequence), entry.body)
        self.state = apply_events(self.state, [(event, entry.sha)])
        return event


class AcknowledgesUnknownWrites(SharedLog):
    """A write with unknown outcome is taken for done."""

    async def _write(self, draft: DiscussionEvent) -> DiscussionEvent:
        sequence = self.state.end + 1
        try:
            return await super()._write(draft)
        except StoreUnavailable:
            return draft.model_copy(update={"sequence": sequence})


class ChainsToNothing(SharedLog):
    """An event does not name the one before it that its writer saw last."""

    def _make_entry(self, event: DiscussionEvent) -> Any:
        state, self.state = self.state, self.state.model_copy(update={"sha": ""})
        entry = super()._make_entry(event)
        self.state = state
        return entry


class PrunesTwice(SharedLog):
    """A pruning that met another one is written behind it as it was planned."""

    async def _prune(self, policy: PrunePolicy, timestamp: str, through: int) -> Pruning | None:
        visible = self.state.visible
        while True:
            written = await super()._prune(policy, timestamp, through)
            if written is None or visible == self.state.visible:
                return written
            number, later = self.state.prunings + 1, written.model_copy()
            again = later.model_copy(update={"number": number})
            key = self.prefix + keys.archive_key(number)
            await self.store.create(key, again.model_dump_json(by_alias=True).encode())
            self.state = apply_pruning(self.state, number, again.sequences())
            return written


class ReadsEventsFirst(SharedLog):
    """A reader applies prunings of events that it has not read yet."""

    async def _refresh(self) -> LogState:
        await self._read_new()
        known = self.prefix + keys.archive_key(self.state.prunings)
        names = [key async for key in list_keys(self.store, self.prefix + keys.ARCHIVE, known)]
        for name in names:
            pruning = await self._read_pruning(name)
            self.state = apply_pruning(self.state, pruning.number, pruning.sequences())
        return self.state


class SavesWhatWasPruned(SharedLog):
    """The saved state counts prunings whose events it still shows."""

    async def _save(self) -> None:
        shown, self.state = self.state, self.state.model_copy(update={"prunings": 9})
        await super()._save()
        self.state = shown
