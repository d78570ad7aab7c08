"""Which events belong together, and are shown together or not at all."""

from collections import Counter, deque
from collections.abc import Sequence
from typing import TypeAlias, TypeVar

from events.event import AnyEvent
from events.tools import ActionEvent, AgentErrorEvent, ObservationEvent, UserRejectObservation

Answer: TypeAlias = ObservationEvent | AgentErrorEvent | UserRejectObservation

Bonded = TypeVar("Bonded", bound=AnyEvent)


class Bonds:
    """Grows with the log, so that it also knows of what is not shown any more.

    * an answer belongs to the action that it answers: one answer an action
    * the actions of one answer of the model are a batch: they stand side by side in the log
    * a batch with thinking blocks, and all actions and answers behind it up to the next such batch
      or the next event of another kind, are a thinking loop
    """

    def __init__(self) -> None:
        self.action_of: dict[str, str] = {}
        self.batch_of: dict[str, int] = {}
        self.thinking: set[str] = set()
        self.loop_of: dict[str, int] = {}
        self._in_batch: Counter[int] = Counter()
        self._in_loop: Counter[int] = Counter()
        self._response: str | None = None
        self._looping = False
        self._unread: dict[str, deque[str]] = {}

    def add(self, event: AnyEvent) -> None:
        if isinstance(event, ActionEvent):
            self._intend(event)
        elif isinstance(event, Answer):
            self._response = None
            self.action_of[event.id] = self._answered(event)
        else:
            self.part()
            return
        if self._looping:
            loop = len(self.thinking)
            self.loop_of[event.id] = loop
            self._in_loop[loop] += 1

    def part(self) -> None:
        """What comes now is neither of the same batch nor of the same loop."""
        self._response = None
        self._looping = False

    def whole(self, events: Sequence[Bonded]) -> list[Bonded]:
        """The events of which nothing that belongs to them is missing."""
        kept, left = list(events), -1
        while len(kept) != left:
            left = len(kept)
            kept = self._sieved(kept)
        return kept

    def _sieved(self, events: list[Bonded]) -> list[Bonded]:
        """Without those that miss something, of which others may come to miss something too."""
        answer_of: dict[str, str] = {}
        for event in events:
            if (action := self.action_of.get(event.id)) is not None:
                answer_of.setdefault(action, event.id)
        here = {event.id for event in events if event.id in self.batch_of}
        batches = Counter(self.batch_of[one] for one in here & answer_of.keys())
        loops = Counter(self.loop_of[event.id] for event in events if event.id in self.loop_of)

        def stays(one: str) -> bool:
            loop, batch = self.loop_of.get(one), self.batch_of.get(one)
            if loop is not None and loops[loop] < self._in_loop[loop]:
                return False
            if batch is not None:
                return one in answer_of and batches[batch] == self._in_batch[batch]
            action = self.action_of.get(one)
            return action is None or (action in here and answer_of[action] == one)

        return [event for event in events if stays(event.id)]

    def _intend(self, event: ActionEvent) -> None:
        fresh = self._response != event.llm_response_id
        batch = len(self._in_batch) + fresh
        self.batch_of[event.id] = batch
        self._in_batch[batch] += 1
        self._response = event.llm_response_id
        if event.thinking_blocks and (fresh or not self._looping):
            self.thinking.add(event.id)
            self._looping = True
        if event.action is None:
            if fresh or event.tool_call_id not in self._unread:
                self._unread[event.tool_call_id] = deque()
            self._unread[event.tool_call_id].append(event.id)

    def _answered(self, event: Answer) -> str:
        """The id of the action that this answers; nothing where there is none.

        An error that names no action is that of a call which could not be read.
        """
        if event.action_id is not None:
            return event.action_id if event.action_id in self.batch_of else ""
        waiting = self._unread.get(event.tool_call_id)
        return waiting.popleft() if waiting else ""
