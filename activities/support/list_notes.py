"""The summaries of conversations that came to rest, on their way into the index of lists.

A worker writes them together, one object for each user, beside its steps: none of them waits for
it, and merges what it wrote. If the worker dies before, lists read the log, and `perdure reindex`
makes the index anew.
"""

import asyncio
import json
import logging
from dataclasses import dataclass, field
from itertools import count

from perdure.agent.loop.phase import find_phase
from perdure.agent.loop.state import State, actions_to_confirm
from perdure.events.entry import Entry
from perdure.storage import keys
from perdure.storage.cache import Cache
from perdure.storage.conversations import creation_time
from perdure.storage.errors import StoreError
from perdure.storage.list_index import add_to_index, is_lasting, merge_objects
from perdure.storage.log.event_log import EventLog
from perdure.storage.store import Store
from perdure.storage.summaries import summarize_wait
from perdure.storage.summary import CALL_FIELDS, Summary, message_text, shorten_title

logger = logging.getLogger(__name__)

FLUSH_INTERVAL = 2.0
"""Seconds for which summaries are collected."""

MERGED_OBJECTS = 16
"""Objects of a user that are merged into one, and so many of these into one again."""

MAX_USERS = 1000
"""Users whose objects a worker remembers."""


@dataclass(eq=False)
class ListNotes:
    """The summaries that a worker has not written yet, by user and conversation."""

    store: Store
    interval: float = FLUSH_INTERVAL
    merged_objects: int = MERGED_OBJECTS
    _noted: dict[str, dict[str, Summary]] = field(default_factory=dict)
    _written: Cache[str, list[list[str]]] = field(default_factory=lambda: Cache(MAX_USERS))
    """The keys of the objects that it wrote, by user and by how often they were merged."""
    _flushing: "asyncio.Task[None] | None" = None

    async def note(self, log: EventLog, state: State) -> None:
        """Note a conversation that rests; nothing is asked of the store."""
        summary = await _summarize(log, state)
        if summary is None or not is_lasting(summary):
            return
        self._noted.setdefault(log.user_id, {})[summary.id] = summary
        if self._flushing is None or self._flushing.done():
            self._flushing = asyncio.create_task(self._flush_later())

    async def flush(self) -> None:
        """Write what is noted; an error is only logged, as lists are right without the index."""
        noted, self._noted = self._noted, {}
        for user_id, summaries in noted.items():
            try:
                key = await add_to_index(self.store, user_id, summaries.values())
            except StoreError as error:
                logger.warning("the index of %s lacks conversations: %s", user_id, error)
                continue
            try:
                await self._merge(user_id, key)
            except StoreError as error:
                logger.warning("the index of %s has more objects than it could: %s", user_id, error)

    async def _merge(self, user_id: str, key: str | None) -> None:
        """Merge objects that this worker wrote, once there are many, so that lists read few."""
        levels = self._written.get(user_id) or []
        self._written.put(user_id, levels)
        for level in count():
            if key is None:
                return
            if level == len(levels):
                levels.append([])
            levels[level].append(key)
            if len(levels[level]) < self.merged_objects:
                return
            names, levels[level] = levels[level], []
            key = await merge_objects(self.store, user_id, names)

    async def _flush_later(self) -> None:
        await asyncio.sleep(self.interval)
        await self.flush()


async def _summarize(log: EventLog, state: State) -> Summary | None:
    """Summarize a conversation from what this worker has in memory; None if that is too little."""
    begun = creation_time(log.conversation_id)
    if begun is None or keys.is_derived(log.conversation_id) or state.spec is None:
        return None
    last = await _find_cached(log, state.next_seq - 1)
    first = None if state.first_user_seq is None else await _find_cached(log, state.first_user_seq)
    has_title = first is not None or state.title or state.first_user_seq is None
    if last is None or not has_title:
        return None
    message = message_text(json.loads(first.body)) if first else None
    return Summary(
        id=log.conversation_id,
        status=state.status,
        phase=find_phase(state),
        turn=state.turn,
        events=state.next_seq,
        model=state.spec.model.name,
        begun=begun.isoformat(timespec="milliseconds"),
        last_event=f"{last.event.timestamp}+00:00",
        title=state.title or (shorten_title(message) if message else None),
        tags=state.spec.tags,
        trouble=None,
        asks=tuple(call.model_dump(include=CALL_FIELDS) for call in actions_to_confirm(state)),
        tokens=state.usage.prompt_tokens + state.usage.completion_tokens,
        cost=state.usage.known_cost,
        usage=state.usage,
        first_message=None,
        agent=state.spec.agent,
        app=state.spec.app_name,
        wait=summarize_wait(state),
        is_hidden=state.spec.hidden,
    )


async def _find_cached(log: EventLog, seq: int) -> Entry | None:
    entries = await log.read_cached(seq, 1)
    return entries[0] if entries else None
