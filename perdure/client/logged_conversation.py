"""A conversation as its log has it, whoever reads that log: its events, its state, its turns."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from functools import cached_property

from perdure.agent.loop.start import ConversationStatus
from perdure.agent.loop.state import State
from perdure.client.events.event_list import EventList
from perdure.client.statuses import distinct_events
from perdure.client.turn import Turn, TurnResult, read_newest_state
from perdure.errors import NotFound
from perdure.events.control import ConversationStateUpdateEvent
from perdure.events.entry import Entry
from perdure.events.event import AnyEvent
from perdure.storage.log.readable import ReadableLog
from perdure.storage.log.state import read_state


class LoggedConversation(ABC):
    """The methods of a conversation that read its log."""

    log: ReadableLog
    _sent_id: str | None = None
    """The id of the message that this object sent last; it began a turn."""
    _sent_after: int | None = None
    """The last slot before that message."""

    async def state(self) -> State:
        """Fold the log into its state. Raises NotFound."""
        state = await read_state(self.log)
        if state.next_seq == 0:
            raise NotFound.for_conversation(self.log.conversation_id)
        return state

    @cached_property
    def event_log(self) -> EventList:
        """The events that are in the log, by index, by slice, by id."""
        return EventList(self.log)

    async def events(self, after: int = -1) -> AsyncIterator[Entry]:
        """Yield every log entry after slot `after`, and new ones as they are written, forever."""
        async with aclosing(self.log.tail(after)) as entries:
            async for entry in entries:
                yield entry

    async def turn(self) -> AsyncIterator[AnyEvent]:
        """Yield the events of the turn of the newest message, and end with that turn.

        The newest message is the last one that this object sent, else the last one that anybody
        did. A turn ends when the agent has answered, failed, reached a limit, or waits for a
        person; a message that anybody sends before belongs to it.
        """
        async with aclosing((await self._turn()).entries()) as entries:
            async for entry in entries:
                yield entry.event

    async def result(self) -> TurnResult:
        """Wait for the end of that turn. Raises TurnFailed if it ended with an error."""
        return await (await self._turn()).result()

    async def wait_for_turn(self, message_id: str | None = None, after: int = -1) -> State:
        """Wait until the agent's turn is over, or waits for a person to confirm its actions.

        The turn is the one that the message `message_id` began, if it is given, and has an event
        after slot `after`. Raises Conflict if the workflow fails.
        """
        return await Turn(self.log, message_id, after, self._check_workflow).end()

    async def _turn(self) -> Turn:
        after = self._sent_after
        if after is None:
            newest = await read_newest_state(self.log, self._has_news)
            after = max(-1, newest.last_user_seq - 1)
        return Turn(self.log, self._sent_id, after, self._check_workflow, self._has_news)

    async def statuses(self) -> AsyncIterator[ConversationStateUpdateEvent]:
        """Yield the status as an event, now and whenever it changes; end once it is closed.

        `value` is the status as a person is told of it, `status_detail` what belongs to it: what is
        loaded, which limit was reached, which model is asked again and when. The events have no
        slot: what lasts follows from the log, and what lasts for a moment only is not in it. Raises
        NotFound.
        """
        if not await self.exists():
            raise NotFound.for_conversation(self.log.conversation_id)
        async with (
            aclosing(self._watch_statuses()) as statuses,
            aclosing(distinct_events(statuses)) as events,
        ):
            async for event in events:
                yield event

    @abstractmethod
    async def exists(self) -> bool:
        """Tell whether it has been started, even if no worker has taken it up yet."""

    @abstractmethod
    def _watch_statuses(self) -> AsyncGenerator[ConversationStatus, None]:
        """Yield the status, now and whenever it may have changed, forever."""

    @abstractmethod
    async def _has_news(self, next_seq: int) -> bool | None:
        """Tell whether more is to be recorded than the log's slots before `next_seq`.

        None if nobody can tell.
        """

    @abstractmethod
    async def _check_workflow(self) -> None:
        """Raise Conflict if the workflow failed, Unreachable after a long outage."""
