"""The lists of a user's conversations: written, hidden, purged, indexed and listed side by side."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from perdure.activities.support.inbox_events import state_update, to_event
from perdure.activities.support.list_notes import ListNotes
from perdure.agent.loop.inbox import UserMessage
from perdure.api.conversations import Conversation
from perdure.client.lists.lists import ConversationLists, ListFilter
from perdure.events.content import Message, TextContent
from perdure.events.entry import Origin
from perdure.events.messages import MessageEvent
from perdure.storage.conversations import hide_conversation
from perdure.storage.keys import conversation_prefix, index_prefix
from perdure.storage.list_index import remove_from_index
from perdure.storage.log.cached_state import encode_cached_state
from perdure.storage.log.entry_cache import EntryCache
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.purge import purge
from perdure.storage.log.state import read_state
from perdure.storage.reindex import reindex
from reliability.simulation.conversation import USER
from reliability.simulation.laws import require
from reliability.simulation.steps import SAVED_STATES
from reliability.simulation.store import LATE_SECONDS, Access
from reliability.simulation.trials.trial import Trial
from reliability.simulation.world import CACHE_BYTES, NOW, SPEC


class Desk:
    """A process that works on conversations and lists them."""

    def __init__(self, store: Access) -> None:
        self.store = store
        self.cache = EntryCache(CACHE_BYTES)
        self.lists = ConversationLists(store)
        self.notes = ListNotes(store, interval=0.5, merged_objects=2)

    async def take_turn(self, name: str, turn: int) -> int:
        """Record a turn as the steps of a conversation do; return the number of its events."""
        log = EventLog(self.store, USER, name, self.cache)
        answer = Message(role="assistant", content=(TextContent(text="Done."),))
        events = [
            *([] if turn else [state_update(NOW, "spec", SAVED_STATES)]),
            to_event(UserMessage(text=f"{name} {turn}", message_id=f"{turn}"), NOW, SPEC),
            MessageEvent(timestamp=NOW, source="agent", llm_message=answer),
        ]
        origin = Origin(run="run", activity=f"turn-{turn}")
        await log.append(events, base=1 + 2 * turn if turn else 0, origin=origin)
        state = await read_state(log)
        await log.save_state(encode_cached_state(state))
        await self.notes.note(log, state)
        return state.next_seq

    async def hide(self, name: str) -> None:
        await hide_conversation(self.store, USER, name)

    async def purge(self, name: str) -> None:
        await purge(EventLog(self.store, USER, name))
        await remove_from_index(self.store, USER, name)

    async def reindex(self) -> None:
        await reindex(self.store, USER)

    async def read(self) -> dict[str, Conversation]:
        """Read the first page of the list, which has all."""
        client: Any = SimpleNamespace(user_id=USER, has_search_attributes=lambda: _no())
        page = await self.lists.read_page(client, 100, None, ListFilter())
        return {item.id: item for item in page.items}


async def _no() -> bool:
    return False


@dataclass
class Listing:
    """The content of a list: the events of each, what was due, and what was gone before."""

    shown: dict[str, int]
    due: dict[str, int]
    gone: set[str]


@dataclass
class Known:
    """The requests that were begun and those that were acknowledged."""

    events: dict[str, int] = field(default_factory=dict)
    leaving: set[str] = field(default_factory=set)
    """The conversations that somebody began to hide or to purge."""
    gone: set[str] = field(default_factory=set)
    purged: set[str] = field(default_factory=set)
    listings: list[Listing] = field(default_factory=list)


class ListTrial(Trial[Desk]):
    """Conversations go on and are hidden while others list; then some are purged."""

    kind = "lists"
    part = Desk
    written_once = ("/events/", "/index/")

    def make_resources(self, store: Access) -> Desk:
        desk: Desk = self.part(store)
        return desk

    async def act(self) -> None:
        self.known = Known()
        dice = self.loop.random
        names = [make_id(number) for number in range(dice.choice((2, 3, 4)))]
        await asyncio.gather(
            *(self._converse(name, dice.choice((1, 1, 2))) for name in names),
            *(self._list(dice.choice((1, 2))) for _ in range(dice.choice((1, 1, 2)))),
            *(self._reindex() for _ in range(dice.choice((0, 0, 1)))),
        )
        await self.crew.wait_until_idle()
        await asyncio.sleep(LATE_SECONDS)  # nobody may be writing what is purged
        await asyncio.gather(
            *(self._purge(name) for name in dice.sample(names, dice.choice((0, 1, 1)))),
            self._list(1),
            *(self._reindex() for _ in range(dice.choice((0, 1)))),
        )

    async def _converse(self, name: str, turns: int) -> None:
        for turn in range(turns):
            await asyncio.sleep(self.loop.delay() * 5)
            take = partial(Desk.take_turn, name=name, turn=turn)
            self.known.events[name] = await self._do(f"turn {name[-1]}.{turn}", take)
        if self.loop.chance(0.3):
            self.known.leaving.add(name)
            await self._do(f"hide {name[-1]}", lambda desk: desk.hide(name))
            self.known.gone.add(name)

    async def _purge(self, name: str) -> None:
        self.known.leaving.add(name)
        await self._do(f"purge {name[-1]}", lambda desk: desk.purge(name))
        self.known.gone.add(name)
        self.known.purged.add(name)

    async def _reindex(self) -> None:
        await asyncio.sleep(self.loop.delay() * 10)
        await self._do("reindex", lambda desk: desk.reindex())

    async def _list(self, times: int) -> None:
        for _ in range(times):
            await asyncio.sleep(self.loop.delay() * 10)
            before, gone = dict(self.known.events), set(self.known.gone)
            page = await self._do("list", lambda desk: desk.read())
            shown = {name: item.status.next_seq for name, item in page.items()}
            due = {name: n for name, n in before.items() if name not in self.known.leaving}
            self.known.listings.append(Listing(shown, due, gone))

    def _do(self, name: str, step: Callable[[Desk], Awaitable[Any]]) -> Awaitable[Any]:
        return self.crew.complete(name, step)

    async def settle(self) -> None:
        desk = self.make_resources(Access(self.bucket, 0.0))
        for _ in range(2):
            self.last = await desk.read()

    def check(self) -> None:
        self.check_listings()
        self.check_purged()
        self.check_last()
        self.check_index()

    def check_listings(self) -> None:
        """A list shows what was there before, up to date, and nothing that was gone."""
        for each in self.known.listings:
            back = each.gone & set(each.shown)
            require(not back, f"a list shows {back}, which were gone")
            for name, events in each.due.items():
                require(name in each.shown, f"a list lacks {name}")
                require(each.shown[name] >= events, f"a list shows an earlier state of {name}")

    def check_purged(self) -> None:
        """Nothing is left of a purged conversation, but what came late."""
        for name in self.known.purged:
            prefix = conversation_prefix(USER, name)
            left = [prefix + key for key, _ in self.bucket.under(prefix)]
            left = [key for key in left if key not in self.bucket.late]
            require(not left, f"of what was purged there is {left}")

    def check_last(self) -> None:
        """In the end a list shows all that there is, and of each what its log says.

        One whose saved state is not that of its last event is shown at work.
        """
        due = set(self.known.events) - self.known.gone
        require(set(self.last) == due, f"the list shows {set(self.last)}, and there are {due}")
        for name, item in self.last.items():
            prefix = conversation_prefix(USER, name)
            events = len(list(self.bucket.under(f"{prefix}events/")))
            saved = json.loads(self.bucket.objects[f"{prefix}base_state.json"])["next_seq"]
            phases = ("awaiting_user",) if saved == events else ("awaiting_user", "running")
            facts = (item.status.next_seq, item.status.title)
            require(
                facts == (events, f"{name} 0"), f"the list says {facts} of {name}, not {events}"
            )
            phase = item.status.phase
            require(phase in phases, f"the list says that {name} is {phase}, not {phases}")

    def check_index(self) -> None:
        """Whoever lists drops what an index says of conversations that are gone."""
        for key, body in self.bucket.under(index_prefix(USER)):
            noted = {json.loads(line)["id"] for line in body.splitlines()}
            require(not noted & self.known.gone, f"{key} names {noted & self.known.gone}")


def make_id(number: int) -> str:
    """Make the id of a conversation, a UUIDv7."""
    return str(UUID(int=0x01900000_0000 + number << 80 | 0x7 << 76 | 0x2 << 62 | number))
