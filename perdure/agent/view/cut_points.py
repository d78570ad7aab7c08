"""The points where a view may be cut without breaking its groups."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from perdure.agent.view.atomic_groups import ActionResult, AtomicGroups
from perdure.events.condensation import CondensationSummaryEvent
from perdure.events.custom import CustomEvent
from perdure.events.messages import MessageEvent, RecallEvent, SystemPromptEvent
from perdure.events.tools import ActionEvent

ViewEvent: TypeAlias = (
    SystemPromptEvent
    | MessageEvent
    | ActionEvent
    | ActionResult
    | RecallEvent
    | CondensationSummaryEvent
    | CustomEvent
)
"""The events that a model can be shown."""


@dataclass(frozen=True)
class CutPoints:
    """Sorted indices of a view: a cut at an index lies before the event of that index."""

    indices: tuple[int, ...]

    def __iter__(self) -> Iterator[int]:
        return iter(self.indices)

    def at_or_after(self, index: int) -> int | None:
        """Return the first cut point from `index` on."""
        at = bisect_left(self.indices, index)
        return self.indices[at] if at < len(self.indices) else None

    def at_or_before(self, index: int) -> int:
        """Return the last cut point up to `index`; the beginning always is one."""
        return self.indices[max(0, bisect_right(self.indices, index) - 1)]


def find_cut_points(events: Sequence[ViewEvent], groups: AtomicGroups) -> CutPoints:
    """Find the cut points of a view: outside of batches and of thinking loops.

    The last result of a batch follows all of its calls. Recalled context stays with its message.
    """
    indices: list[int] = []
    open_calls: set[str] = set()
    in_loop = after_message = False
    for index, event in enumerate(events):
        in_turn = isinstance(event, ActionEvent | ActionResult)
        continues_loop = in_loop and in_turn and event.id not in groups.thinking_starts
        recalled = after_message and isinstance(event, RecallEvent)
        if not (open_calls or continues_loop or recalled):
            indices.append(index)
        if isinstance(event, ActionEvent):
            open_calls.add(event.id)
        elif in_turn:
            open_calls.discard(groups.action_of[event.id])
        in_loop = continues_loop or event.id in groups.thinking_starts
        after_message = recalled or (isinstance(event, MessageEvent) and is_user(event))
    return CutPoints((*indices, len(events)))


def is_user(event: MessageEvent) -> bool:
    """Check whether the model sees the message as a user's: all messages but its own."""
    return event.llm_message.role != "assistant"
