"""A conversation as the routes of OpenHands' client address it."""

from dataclasses import dataclass, field

from perdure.agent.loop.state import State
from perdure.events.control import ConversationStateUpdateEvent
from perdure.events.usage import Usage
from perdure.gateway.callers import ConversationCall
from perdure.gateway.openhands.events import ReadyEvents, native_tools
from perdure.gateway.openhands.info import NO_USAGE, Facts
from perdure.gateway.openhands.record import (
    FIRST_EVENTS,
    OpenHandsRecord,
    least_record,
    load_record,
)
from perdure.gateway.openhands.runs import ConversationKey, Runs
from perdure.gateway.openhands.search import EventPages
from perdure.storage.cache import Cache
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.state import read_state, read_state_at

MAX_RECORDS = 1000


@dataclass
class OpenHandsDoor:
    """The caches that the routes share: events, runs, and what clients have sent."""

    events: ReadyEvents = field(default_factory=ReadyEvents)
    runs: Runs = field(default_factory=Runs)

    def __post_init__(self) -> None:
        self.pages = EventPages(self.events)
        self._records: Cache[ConversationKey, OpenHandsRecord] = Cache(MAX_RECORDS)
        self._usages: Cache[ConversationKey, Usage] = Cache(MAX_RECORDS)

    async def record(self, log: EventLog) -> OpenHandsRecord:
        """Load what the client sent at the start. Raises StoreError."""
        key = (log.user_id, log.conversation_id)
        if (kept := self._records.get(key)) is not None:
            return kept
        found = await load_record(log)
        if found is None:
            state = await read_state(log)
            record = least_record(state.spec.model.name if state.spec else None)
            if state.next_seq < FIRST_EVENTS:  # it may still come
                return record
            found = record
        self._records.put(key, found)
        return found

    async def shared_usage(self, log: EventLog, first: int) -> Usage:
        """Read what was used before a fork's first own event. Raises StoreError."""
        key = (log.user_id, log.conversation_id)
        if (usage := self._usages.get(key)) is None:
            usage = (await read_state_at(log, first)).usage
            self._usages.put(key, usage)
        return usage


@dataclass(frozen=True)
class Parent:
    """The conversation that one forks."""

    conversation_id: str
    event_id: str
    """The last event that both have."""
    uncounted: Usage = NO_USAGE


@dataclass(frozen=True)
class Call:
    """A request to a conversation; its log may have no event yet."""

    door: OpenHandsDoor
    to: ConversationCall
    record: OpenHandsRecord

    @property
    def log(self) -> EventLog:
        return self.to.conversation.log

    @property
    def key(self) -> ConversationKey:
        return (self.log.user_id, self.log.conversation_id)

    @property
    def native(self) -> frozenset[str]:
        return native_tools(self.record.tool_module_qualnames)

    async def facts(self, state: State) -> Facts:
        """Return the facts beside a state. Raises StoreError."""
        times = [entry.event.timestamp for entry in await self.log.read(0, 1)]
        updated = await self.door.events.newest_time(self.log, self.native, state.next_seq)
        parent = await self._parent()
        return Facts(
            conversation_id=self.to.id,
            record=self.record,
            created=times[0] if times else "1970-01-01T00:00:00.000000",
            updated=updated or (times[0] if times else "1970-01-01T00:00:00.000000"),
            parent_id=parent.conversation_id if parent else None,
            parent_event_id=parent.event_id if parent else None,
            uncounted=parent.uncounted if parent else NO_USAGE,
        )

    async def _parent(self) -> Parent | None:
        """Return the conversation that it forks, if there is one."""
        first = await self.log.first_own_seq()
        for entry in await self.log.read(first, 3) if first else ():
            match entry.event:
                case ConversationStateUpdateEvent(
                    key="forked", value={"conversation_id": str(parent), **more}
                ):
                    last = await self.log.get(first - 1)
                    if not more.get("resets_usage"):
                        return Parent(parent, last.event.id)
                    usage = await self.door.shared_usage(self.log, first)
                    return Parent(parent, last.event.id, usage)
        return None
