"""The list of a user's conversations, in the order of their last activity as far as it is known.

The index on the store knows when a conversation came to rest, Temporal when one of its workflows
was last at work, for as long as it keeps closed workflows. Of a conversation that neither knows,
the time of its creation counts.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from time import monotonic
from typing import Literal, TypeAlias

from perdure.agent.loop.start import ConversationStatus, PendingCall
from perdure.api.conversations import Conversation, Page
from perdure.client.lists.activity import ListClient, WorkflowActivity
from perdure.client.lists.cursor import Position, decode_cursor, encode_cursor
from perdure.errors import Invalid
from perdure.events.status import StatusDetail, WaitDetail
from perdure.storage.cache import Cache
from perdure.storage.conversations import list_ages
from perdure.storage.errors import StoreError, StoreRefused, StoreUnavailable
from perdure.storage.list_index import (
    IndexCache,
    LineFields,
    ListIndex,
    add_to_index,
    compact_index,
    find_place,
    is_current,
    is_lasting,
    load_index,
)
from perdure.storage.shared import find_shared, list_marked, read_time
from perdure.storage.store import Store
from perdure.storage.summaries import summarize
from perdure.storage.summary import Summary

logger = logging.getLogger(__name__)

MAX_PAGE = 100
"""Conversations of a page."""

MAX_SUMMARIZED = 200
"""Conversations that one page looks at."""

PARALLEL_SUMMARIES = 16
MAX_CACHED_SUMMARIES = 5000
MAX_CACHED_AGES = 50_000

MAX_ACTIVITY_DELAY = 0.3
"""Seconds for which a process that stays has a list wait for Temporal, which may be busy."""

ListOrder: TypeAlias = Literal["activity", "created"]


@dataclass(frozen=True)
class ListFilter:
    """The conditions of a list of conversations; None sets no condition."""

    status: str | None = None
    tag: str | None = None
    text: str | None = None
    """Words of the title."""
    prefix: str = ""
    """The beginning of the id."""
    app: str | None = None
    agent: str | None = None
    active: bool = False
    """Leave out those that are closed."""
    hidden: bool = False
    """List also those whose start says that lists leave them out; deleted ones stay hidden."""

    def matches(self, summary: Summary) -> bool:
        title = (summary.title or "").lower()
        return (
            self.may_match(summary)
            and self.status in (None, summary.status)
            and not (self.active and summary.status == "closed")
            and (self.tag is None or self.tag in summary.tags)
            and all(word in title for word in (self.text or "").lower().split())
        )

    def may_match(self, summary: Summary | LineFields | None) -> bool:
        """Tell by what never changes of a conversation whether it can match; None may match."""
        return summary is None or (
            self.app in (None, summary.app)
            and self.agent in (None, summary.agent)
            and (self.hidden or not summary.is_hidden)
        )


def check_page_size(limit: int) -> int:
    """Return the number of conversations of a page. Raises Invalid unless it is 1 to 100."""
    if not 1 <= limit <= MAX_PAGE:
        raise Invalid(
            f"A page has 1 to {MAX_PAGE} conversations, not {limit}.",
            "Ask for the following page with the cursor.",
        )
    return limit


class ConversationLists:
    """The lists of the users of a store, with what is cached of them.

    `is_resident` says that the process stays after an answer: an index is then compacted behind it,
    and what Temporal says late is for the next list.
    """

    def __init__(
        self,
        store: Store,
        clock: Callable[[], float] = monotonic,
        *,
        is_resident: bool = False,
    ) -> None:
        self._store = store
        self._is_resident = is_resident
        self._compactions: dict[str, asyncio.Task[None]] = {}
        self._ages: Cache[str, datetime] = Cache(MAX_CACHED_AGES)
        self._activity = WorkflowActivity(clock, MAX_ACTIVITY_DELAY if is_resident else None)
        self._summaries: Cache[tuple[str, str], Summary] = Cache(MAX_CACHED_SUMMARIES)
        self._index = IndexCache()

    async def read_page(
        self,
        client: ListClient,
        limit: int,
        cursor: str | None,
        wanted: ListFilter,
        order: ListOrder = "activity",
    ) -> Page:
        """Read a page of a user's conversations. Raises Invalid for a bad cursor, StoreError."""
        user_id = client.user_id
        has_compaction = user_id in self._compactions  # its objects are about to go
        ages, stored, activity = await asyncio.gather(
            list_ages(self._store, user_id, known=self._ages),
            load_index(self._store, user_id, self._index),
            self._load_activity(client, order),
        )
        index = stored.merge()
        if not has_compaction:
            await self._compact(user_id, stored, [name for _, name in ages])
        places = sorted(
            (
                (
                    find_place(age, name, index, activity.get(name))
                    if order == "activity"
                    else age,
                    name,
                )
                for age, name in ages
                if name.startswith(wanted.prefix)
                and (name not in index or wanted.may_match(index[name].fields))
            ),
            reverse=True,
        )
        anew: list[Summary] = []

        async def show(name: str) -> Conversation | None:
            line = index.get(name)
            known = line.decode() if line is not None else None
            summary = await self._summarize(user_id, name, known)
            if summary is not None and summary != known and is_lasting(summary):
                anew.append(summary)
            matches = summary is not None and wanted.matches(summary)
            return show_summary(user_id, summary) if summary and matches else None

        page = await _read_page(places, limit, cursor, show)
        await self._mend(user_id, anew)
        return page

    async def _compact(self, user_id: str, index: ListIndex, present: Collection[str]) -> None:
        """Compact an index, if there is a reason to. Raises StoreError if that is waited for."""
        if not self._is_resident:
            await compact_index(self._store, user_id, index, present, self._index)
        elif user_id not in self._compactions:
            task = asyncio.create_task(self._compact_behind(user_id, index, present))
            self._compactions[user_id] = task
            task.add_done_callback(lambda _: self._compactions.pop(user_id))

    async def _compact_behind(
        self, user_id: str, index: ListIndex, present: Collection[str]
    ) -> None:
        try:
            await compact_index(self._store, user_id, index, present, self._index)
        except StoreError as error:
            logger.warning("the index of %s could not be compacted: %s", user_id, error)

    async def close(self) -> None:
        """Stop what goes on behind answers; whoever lists next begins it again."""
        await self._activity.close()
        for task in list(self._compactions.values()):
            task.cancel()
        await asyncio.gather(*self._compactions.values(), return_exceptions=True)

    async def _load_activity(self, client: ListClient, order: ListOrder) -> dict[str, datetime]:
        return await self._activity.load(client) if order == "activity" else {}

    async def _mend(self, user_id: str, summaries: Sequence[Summary]) -> None:
        """Put into the index what it lacks; a store that cannot be written to stays as it is."""
        with suppress(StoreRefused, StoreUnavailable):
            await add_to_index(self._store, user_id, summaries)

    async def read_shared(
        self, user_id: str, limit: int, cursor: str | None, wanted: ListFilter
    ) -> Page:
        """Read a page of what others share with a user. Raises Invalid, StoreError."""
        marked = {of.name: of for of in await list_marked(self._store, user_id, "conversation")}

        async def show(name: str) -> Conversation | None:
            shared = await find_shared(self._store, marked[name], user_id)
            if shared is None:
                return None
            summary = await self._summarize(shared.owner, shared.id)
            if summary is None or not wanted.matches(summary):
                return None
            return show_summary(shared.owner, summary, shared.access)

        places = [(read_time(of), name) for name, of in marked.items()]
        return await _read_page(places, limit, cursor, show)

    async def _summarize(
        self, user_id: str, name: str, indexed: Summary | None = None
    ) -> Summary | None:
        """Summarize a conversation: nothing has changed where no event follows the known ones."""
        known = self._summaries.get((user_id, name))
        if indexed is not None and not is_lasting(indexed):
            indexed = None  # `reindex` met it at work: its last event was there, its state was not
        if indexed is not None and (known is None or known.events <= indexed.events):
            known = indexed
        if known is not None and await is_current(self._store, user_id, known):
            return known
        summary = await summarize(self._store, user_id, name)
        if summary is not None and is_lasting(summary):
            self._summaries.put((user_id, name), summary)
        return summary


async def _read_page(
    places: Sequence[Position],
    limit: int,
    cursor: str | None,
    show: Callable[[str], Awaitable[Conversation | None]],
) -> Page:
    """Show the conversations behind a cursor, as far as `show` has them. Raises Invalid."""
    after = decode_cursor(cursor) if cursor is not None else None
    places = [place for place in places if after is None or place < after]
    items: list[Conversation] = []
    for first in range(0, min(len(places), MAX_SUMMARIZED), PARALLEL_SUMMARIES):
        part = places[first : first + PARALLEL_SUMMARIES]
        shown = await asyncio.gather(*(show(name) for _, name in part))
        for place, item in zip(part, shown, strict=True):
            if item is not None:
                items.append(item)
            after = place
            if len(items) == limit:
                break
        if len(items) == limit:
            break
    has_more = bool(places) and after != places[-1]
    return Page(
        items=tuple(items), next_cursor=encode_cursor(after) if has_more and after else None
    )


def show_summary(
    user_id: str, summary: Summary, access: Literal["owner", "read", "write"] = "owner"
) -> Conversation:
    return Conversation(
        id=summary.id,
        owner=user_id,
        access=access,
        status=ConversationStatus(
            conversation_id=summary.id,
            status=summary.status,
            phase=summary.phase,
            title=summary.title,
            turn=summary.turn,
            next_seq=summary.events,
            detail=_detail(summary),
            pending=tuple(PendingCall(**call, asks=True) for call in summary.asks),
            spent=summary.usage,
            model=summary.model,
            tags=summary.tags,
            agent=summary.agent,
            app_name=summary.app,
            hidden=summary.is_hidden,
            trouble=summary.trouble,
        ),
        created=summary.begun,
        updated=summary.last_event,
    )


def _detail(summary: Summary) -> StatusDetail | None:
    """Return what the agent waits for, as far as a summary has it."""
    return None if summary.wait is None else StatusDetail(wait=WaitDetail(**summary.wait))
