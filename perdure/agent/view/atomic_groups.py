"""Groups of events that a model must see whole or not at all."""

from collections import Counter, deque
from collections.abc import Sequence
from typing import TypeAlias, TypeVar

from perdure.events.event import AnyEvent
from perdure.events.tools import (
    ActionEvent,
    AgentErrorEvent,
    ObservationEvent,
    UserRejectObservation,
)

ActionResult: TypeAlias = ObservationEvent | AgentErrorEvent | UserRejectObservation

GroupedEvent = TypeVar("GroupedEvent", bound=AnyEvent)


class AtomicGroups:
    """Groups of events; grows with the log, and includes events that are no longer in the view.

    * a result belongs to the action that it answers: one result an action
    * the actions of one response are a batch: they stand side by side in the log
    * a batch with thinking blocks, and all actions and results behind it up to the next such batch
      or the next event of another kind, are a thinking loop
    """

    def __init__(self) -> None:
        self.action_of: dict[str, str] = {}
        self.batch_of: dict[str, int] = {}
        self.thinking_starts: set[str] = set()
        self.loop_of: dict[str, int] = {}
        self._in_batch: Counter[int] = Counter()
        self._in_loop: Counter[int] = Counter()
        self._response: str | None = None
        self._in_thinking_loop = False
        self._unparsed: dict[str, deque[str]] = {}

    def add(self, event: AnyEvent) -> None:
        if isinstance(event, ActionEvent):
            self._add_action(event)
        elif isinstance(event, ActionResult):
            self._response = None
            self.action_of[event.id] = self._find_action(event)
        else:
            self.end_groups()
            return
        if self._in_thinking_loop:
            loop = len(self.thinking_starts)
            self.loop_of[event.id] = loop
            self._in_loop[loop] += 1

    def end_groups(self) -> None:
        """End the current batch and thinking loop."""
        self._response = None
        self._in_thinking_loop = False

    def select_whole(self, events: Sequence[GroupedEvent]) -> list[GroupedEvent]:
        """Select the events whose groups are complete."""
        whole, size = list(events), -1
        while len(whole) != size:
            size = len(whole)
            whole = self._drop_incomplete(whole)
        return whole

    def are_answered(self, events: Sequence[AnyEvent]) -> bool:
        """Tell whether the events hold each batch whole, and one result for each of its actions."""
        answered = [self.action_of[event.id] for event in events if event.id in self.action_of]
        actions = [event.id for event in events if event.id in self.batch_of]
        batches = Counter(self.batch_of[action] for action in actions)
        return sorted(answered) == sorted(actions) and all(
            size == self._in_batch[batch] for batch, size in batches.items()
        )

    def _drop_incomplete(self, events: list[GroupedEvent]) -> list[GroupedEvent]:
        """Drop the events of incomplete groups, which may make other groups incomplete."""
        result_of: dict[str, str] = {}
        for event in events:
            if (action := self.action_of.get(event.id)) is not None:
                result_of.setdefault(action, event.id)
        actions = {event.id for event in events if event.id in self.batch_of}
        batches = Counter(self.batch_of[event_id] for event_id in actions & result_of.keys())
        loops = Counter(self.loop_of[event.id] for event in events if event.id in self.loop_of)

        def is_complete(event_id: str) -> bool:
            loop, batch = self.loop_of.get(event_id), self.batch_of.get(event_id)
            if loop is not None and loops[loop] < self._in_loop[loop]:
                return False
            if batch is not None:
                return event_id in result_of and batches[batch] == self._in_batch[batch]
            action = self.action_of.get(event_id)
            return action is None or (action in actions and result_of[action] == event_id)

        return [event for event in events if is_complete(event.id)]

    def _add_action(self, event: ActionEvent) -> None:
        is_new = self._response != event.llm_response_id
        batch = len(self._in_batch) + is_new
        self.batch_of[event.id] = batch
        self._in_batch[batch] += 1
        self._response = event.llm_response_id
        if event.thinking_blocks and (is_new or not self._in_thinking_loop):
            self.thinking_starts.add(event.id)
            self._in_thinking_loop = True
        if event.action is None:
            if is_new or event.tool_call_id not in self._unparsed:
                self._unparsed[event.tool_call_id] = deque()
            self._unparsed[event.tool_call_id].append(event.id)

    def _find_action(self, event: ActionResult) -> str:
        """Return the id of the action that this result answers, or an empty string.

        An error without an action's id answers a call that could not be parsed.
        """
        if event.action_id is not None:
            return event.action_id if event.action_id in self.batch_of else ""
        waiting = self._unparsed.get(event.tool_call_id)
        return waiting.popleft() if waiting else ""
