"""Writing the events of a step: all at once, or one after another under names of their own."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from perdure.activities.support.step import is_retry, origin, summarize_all
from perdure.agent.calls.completion import Completion
from perdure.events.base import EventBase
from perdure.events.entry import Entry, Origin
from perdure.events.event import Event, answered_action_id
from perdure.events.messages import RecallEvent
from perdure.events.summary import EventSummary
from perdure.events.usage import Usage
from perdure.storage.errors import Fenced, Superseded
from perdure.storage.log.event_log import EventLog

AnEvent = TypeVar("AnEvent", bound=EventBase)

MAX_ADOPTED_ENTRIES = 64
"""Most entries of other steps that a step returns; the next step returns the rest."""


async def append_exclusive(
    log: EventLog, events: Sequence[Event], base: int, part: str = "", usage: Usage | None = None
) -> list[EventSummary]:
    """Append events that follow only from the log before `base`; return their summaries.

    If a late step of this run came first, return its events instead: the workflow folds them, and
    decides again. Raises Fenced if another run has written there.
    """
    return summarize_all(await append_or_adopt(log, events, base, usage, part))


async def append_or_adopt(
    log: EventLog,
    events: Sequence[Event],
    base: int,
    usage: Usage | None = None,
    part: str = "",
    own: Origin | None = None,
) -> list[Entry]:
    """Append like `append_exclusive`, as this step or as `own`; return the entries."""
    try:
        return await log.append(events, base=base, origin=own or origin(part), usage=usage)
    except Superseded:
        return ensure_own_run(await log.read(base, MAX_ADOPTED_ENTRIES))


def ensure_own_run(entries: list[Entry]) -> list[Entry]:
    """Return the entries. Raises Fenced if another run has written one of them."""
    run = origin().run
    for entry in entries:
        if entry.origin.run != run:
            raise Fenced(f"slot {entry.seq}", entry.origin.run) from None
    return entries


async def request_once(
    log: EventLog, seq: int, request: Callable[[], Awaitable[Completion]], part: str = ""
) -> Completion:
    """Return a model's response for this slot, requested once however often a step is retried."""
    recorded = await log.read_response(seq) if is_retry() else None
    return recorded or await log.record_response(seq, await request(), origin(part))


def _is_of_later_step(entry: Entry) -> bool:
    """Tell whether an entry is of a step after this one: beside it, tools answer and recall."""
    if entry.origin.activity.partition(" ")[0] == origin().activity:
        return False
    return not (answered_action_id(entry.event) or isinstance(entry.event, RecallEvent))


class Writer:
    """Appends the parts of a step one by one, and adopts those of an earlier attempt.

    Attempts may write different parts: a skill is gone, an action was answered meanwhile. So a
    part is identified by its name, not by its position.
    """

    def __init__(self, log: EventLog, base: int) -> None:
        self.log = log
        self.base = base
        self._entries: list[Entry] = []

    async def write(self, part: str, event: Event, optional: bool = False) -> None:
        """Write an event, unless it answers an action that an entry on the way has answered.

        Local calls of a workflow task that was lost have answered actions which still seem open.
        An `optional` part, which another attempt may have left out, is not written once a later
        step has written: this attempt is late.
        """
        answered = {answered_action_id(entry.event) for entry in self._entries}
        if answered_action_id(event) in answered - {None}:
            return
        base = self._entries[-1].seq + 1 if self._entries else self.base
        written = await self.log.append(
            [event],
            base=base,
            origin=origin(part),
            shared=True,
            ends=_is_of_later_step if optional else None,
        )
        self._entries += written

    def find_newest(self, kind: type[AnEvent]) -> AnEvent | None:
        """Return the newest event of a kind that this step has written, if any."""
        events = (entry.event for entry in reversed(self._entries))
        return next((event for event in events if isinstance(event, kind)), None)

    async def summaries(self) -> list[EventSummary]:
        """Summarize the events of this step, further ones of an earlier attempt included.

        Without these, the workflow would go on from a slot before them, and repeat steps.
        """
        mine = origin()
        while is_retry():
            end = self._entries[-1].seq + 1 if self._entries else self.base
            entry = await self.log.find(end)
            if entry is None or entry.origin.run != mine.run:
                break
            if entry.origin.activity.partition(" ")[0] != mine.activity:
                break
            self._entries.append(entry)
        return summarize_all(self._entries)
