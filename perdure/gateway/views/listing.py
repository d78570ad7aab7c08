"""The list of a user's conversations, in the order of their last activity as far as it is known.

The store knows when a conversation was created, Temporal when one of its workflows was last at
work, for as long as it keeps closed workflows. Where Temporal does not answer, or does not index
conversations, the order is that of their creation.
"""

import asyncio
import base64
import binascii
import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic
from typing import Literal, TypeAlias

from temporalio.client import WorkflowExecution
from temporalio.service import RPCError

from perdure.agent.loop.start import ConversationStatus, PendingCall
from perdure.api.conversations import Conversation, Page
from perdure.client.client import Client
from perdure.errors import Invalid
from perdure.storage import keys
from perdure.storage.cache import Cache
from perdure.storage.conversations import list_ages
from perdure.storage.shared import find_shared, list_marked, read_time
from perdure.storage.store import Store
from perdure.storage.summaries import Summary, summarize
from perdure.temporal.names import conversation_id_of
from perdure.temporal.search_attributes import LAST_ACTIVITY

MAX_WORKFLOWS = 1000
"""The newest workflows of a user of which Temporal is asked."""

ACTIVITY_MAX_AGE = 3.0
"""Seconds for which Temporal's answer is used: it lists few times a second for all."""

MAX_SUMMARIZED = 200
"""Conversations that one page looks at."""

PARALLEL_SUMMARIES = 16
MAX_CACHED_SUMMARIES = 5000
MAX_CACHED_AGES = 50_000
MAX_CACHED_USERS = 1000

ListOrder: TypeAlias = Literal["activity", "created"]

Position: TypeAlias = tuple[datetime, str]
"""The place of a conversation in the list: its last activity, and its id."""


@dataclass(frozen=True)
class ListFilter:
    """The conditions of a list of conversations; None sets no condition."""

    status: str | None = None
    tag: str | None = None
    text: str | None = None
    prefix: str = ""
    """The beginning of the id."""

    def matches(self, summary: Summary) -> bool:
        title = (summary.title or "").lower()
        return (
            self.status in (None, summary.status)
            and (self.tag is None or self.tag in summary.tags)
            and all(word in title for word in (self.text or "").lower().split())
        )


class ConversationLists:
    """The lists of all users of a gateway, with what is cached of them."""

    def __init__(self, store: Store, clock: Callable[[], float] = monotonic) -> None:
        self._store = store
        self._clock = clock
        self._ages: Cache[str, datetime] = Cache(MAX_CACHED_AGES)
        self._activity: Cache[str, tuple[float, dict[str, datetime]]] = Cache(MAX_CACHED_USERS)
        self._summaries: Cache[tuple[str, str], Summary] = Cache(MAX_CACHED_SUMMARIES)

    async def read_page(
        self,
        client: Client,
        limit: int,
        cursor: str | None,
        wanted: ListFilter,
        order: ListOrder = "activity",
    ) -> Page:
        """Read a page of a user's conversations. Raises Invalid for a bad cursor, StoreError."""
        ages = await list_ages(self._store, client.user_id, known=self._ages)
        activity = await self._load_activity(client) if order == "activity" else {}
        places = sorted(
            (
                (max(age, activity.get(name, age)), name)
                for age, name in ages
                if name.startswith(wanted.prefix)
            ),
            reverse=True,
        )

        async def show(name: str) -> Conversation | None:
            summary = await self._summarize(client.user_id, name)
            matches = summary is not None and wanted.matches(summary)
            return _show(client.user_id, summary) if summary and matches else None

        return await _read_page(places, limit, cursor, show)

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
            return _show(shared.owner, summary, shared.access)

        places = [(read_time(of), name) for name, of in marked.items()]
        return await _read_page(places, limit, cursor, show)

    async def _load_activity(self, client: Client) -> dict[str, datetime]:
        """Load when the newest workflows of a user were last at work, by conversation."""
        cached = self._activity.get(client.user_id)
        if cached is not None and self._clock() - cached[0] < ACTIVITY_MAX_AGE:
            return cached[1]
        asked, activity = self._clock(), cached[1] if cached else {}
        if await client.has_search_attributes():
            with suppress(RPCError):  # the order is that of before
                activity = await _list_activity(client)
        self._activity.put(client.user_id, (asked, activity))
        return activity

    async def _summarize(self, user_id: str, name: str) -> Summary | None:
        """Summarize a conversation: nothing has changed where no event follows the known ones."""
        known = self._summaries.get((user_id, name))
        if known is not None and await self._is_current(user_id, known):
            return known
        summary = await summarize(self._store, user_id, name)
        if summary is not None and summary.status != "running" and summary.trouble is None:
            self._summaries.put((user_id, name), summary)
        return summary

    async def _is_current(self, user_id: str, known: Summary) -> bool:
        prefix = keys.conversation_prefix(user_id, known.id)
        following = keys.event_key(known.id, known.events)
        last = keys.event_key(known.id, known.events - 1)  # of a purged one nothing is left
        found = await asyncio.gather(
            self._store.read(prefix + following), self._store.read(prefix + last)
        )
        return found[0] is None and found[1] is not None


async def _read_page(
    places: Sequence[Position],
    limit: int,
    cursor: str | None,
    show: Callable[[str], Awaitable[Conversation | None]],
) -> Page:
    """Show the conversations behind a cursor, as far as `show` has them. Raises Invalid."""
    after = _decode(cursor) if cursor is not None else None
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
    return Page(items=tuple(items), next_cursor=_encode(after) if has_more and after else None)


async def _list_activity(client: Client) -> dict[str, datetime]:
    """List the newest workflows of a user. Raises RPCError."""
    query = f"WorkflowType = 'Conversation' AND PerdureUser = '{client.user_id}'"
    activity: dict[str, datetime] = {}
    async for found in client.temporal.list_workflows(query, limit=MAX_WORKFLOWS):
        name = conversation_id_of(found.id)
        moment = _last_activity(found)
        activity[name] = max(moment, activity.get(name, moment))
    return activity


def _last_activity(found: WorkflowExecution) -> datetime:
    moment: datetime | None = found.typed_search_attributes.get(LAST_ACTIVITY)
    return (moment or found.start_time).astimezone(UTC)


def _show(
    user_id: str, summary: Summary, access: Literal["owner", "read", "write"] = "owner"
) -> Conversation:
    return Conversation(
        id=summary.id,
        owner=user_id,
        access=access,
        status=ConversationStatus(
            conversation_id=summary.id,
            status=summary.status,
            title=summary.title,
            turn=summary.turn,
            next_seq=summary.events,
            pending=tuple(PendingCall(**call, asks=True) for call in summary.asks),
            spent=summary.usage,
            model=summary.model,
            tags=summary.tags,
            trouble=summary.trouble,
        ),
        created=summary.begun,
        updated=summary.last_event,
    )


def _encode(place: Position) -> str:
    text = json.dumps([place[0].isoformat(), place[1]])
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _decode(cursor: str) -> Position:
    """Raises Invalid."""
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        moment, name = json.loads(text)
        parsed = datetime.fromisoformat(moment), str(name)
        parsed[0] < datetime.now(UTC)  # noqa: B015 - raises TypeError without a time zone
        return parsed
    except (binascii.Error, ValueError, TypeError, RecursionError) as error:
        raise Invalid("The cursor is none of a list.", "Begin without one.") from error
