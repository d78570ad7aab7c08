"""The frames of a conversation as what OpenHands' socket sends, text by text."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from perdure.agent.loop.evolve import evolve
from perdure.agent.loop.state import State
from perdure.api.frames import DeltaFrame, NoticeFrame
from perdure.api.notices import TOO_MANY_CONVERSATIONS, notice_of_event
from perdure.events.control import ConversationStateUpdateEvent
from perdure.events.entry import Entry
from perdure.events.projection import summarize
from perdure.gateway.openhands.deltas import Deltas
from perdure.gateway.openhands.events import convert_entry, state_update, text_delta
from perdure.gateway.openhands.info import Facts, execution_status, state_of


@dataclass
class SocketView:
    """The view of a client: the state after the events that it has.

    `newest` is the time of the last of these. Where a run ends, all its events are sent, then the
    status, then the whole state: the client takes this for the end.
    """

    state: State
    facts: Facts
    native: frozenset[str]
    newest: str
    streams: bool = False
    runs: int = 0
    """How often a run was seen to begin."""
    _deltas: Deltas = field(default_factory=Deltas)

    def full_state(self) -> str:
        """Return the whole state, as of the events that were sent."""
        value = state_of(self.state, self.facts)
        return state_update("full_state", value, self.newest or self.facts.created)

    def take_entry(self, entry: Entry, is_new: bool = True) -> Iterator[tuple[str, bool]]:
        """Yield the texts for an entry, each with whether it says that a run has ended.

        Of one that is not new only the event itself: its client knows what has come of it.
        """
        before, self.state = self.state, evolve(self.state, summarize(entry))
        yield from ((text, False) for text in self._show(entry))
        if is_new:
            yield from self._tell_changes(entry, before)

    def _show(self, entry: Entry) -> Iterator[str]:
        if self.streams and (rest := self._deltas.end(entry)):
            yield text_delta(rest, self.newest)
        if (event := convert_entry(entry, self.native, self.newest)) is not None:
            self.newest = event.timestamp
            yield event.body

    def _tell_changes(self, entry: Entry, before: State) -> Iterator[tuple[str, bool]]:
        """Yield what follows from an entry: a notice, fields of the state, the end of a run."""
        if (notice := notice_of_event(entry.event)) is not None:
            yield self.describe_notice(notice), False
        yield from ((text, False) for text in self._list_changes(before))
        self.runs += self.state.status == "running" != before.status
        if self.state.status != "running" and (before.status == "running" or is_resumption(entry)):
            yield self.full_state(), True

    def take_delta(self, frame: DeltaFrame) -> Iterator[str]:
        """Yield the words of a frame, if the client wants them."""
        if self.streams and frame.step == "llm.chat" and (text := self._deltas.take(frame)):
            yield text_delta(text, self.newest or self.facts.created)

    def take_notice(self, frame: NoticeFrame) -> Iterator[str]:
        """Yield a notice, unless it follows from an event, with which it was told."""
        if frame.id != TOO_MANY_CONVERSATIONS.id:
            yield self.describe_notice(frame)

    def describe_notice(self, frame: NoticeFrame) -> str:
        value = {"type": frame.type, "id": frame.id, "message": frame.message}
        return state_update("status_update", value, self.newest or self.facts.created)

    def _list_changes(self, before: State) -> Iterator[str]:
        """Yield the fields of the state that have changed."""
        if before.spec != self.state.spec and before.spec is not None:
            new = state_of(self.state, self.facts)
            for key in ("confirmation_policy", "tags", "max_iterations"):
                yield state_update(key, new[key], self.newest)
        status = execution_status(self.state)
        if status != execution_status(before):
            yield state_update("execution_status", status, self.newest)


def is_resumption(entry: Entry) -> bool:
    """Tell whether somebody made the agent go on, even where it has nothing to do."""
    event = entry.event
    return isinstance(event, ConversationStateUpdateEvent) and (event.key, event.value) == (
        "status",
        "resumed",
    )
