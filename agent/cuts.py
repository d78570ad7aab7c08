"""The places at which a view may be cut, so that what is left is still one."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from agent.bonds import Answer, Bonds
from events.condensation import CondensationSummaryEvent
from events.messages import MessageEvent, RecallEvent, SystemPromptEvent
from events.tools import ActionEvent

Shown: TypeAlias = (
    SystemPromptEvent | MessageEvent | ActionEvent | Answer | RecallEvent | CondensationSummaryEvent
)
"""What a model can be shown."""


@dataclass(frozen=True)
class Cuts:
    """Indices of a view, in order: a cut at one of them lies before the event of that index."""

    places: tuple[int, ...]

    def __iter__(self) -> Iterator[int]:
        return iter(self.places)

    def at_or_after(self, index: int) -> int | None:
        """The first cut from `index` on."""
        at = bisect_left(self.places, index)
        return self.places[at] if at < len(self.places) else None

    def at_or_before(self, index: int) -> int:
        """The last cut up to `index`; the beginning is always one."""
        return self.places[max(0, bisect_right(self.places, index) - 1)]


def cuts_of(events: Sequence[Shown], bonds: Bonds) -> Cuts:
    """Where a view may be cut: not between a call and its result, nor within a thinking loop.

    So batches stay whole too, for their last result comes behind all their calls. What a message
    called up stays with the message.
    """
    places: list[int] = []
    open_calls: set[str] = set()
    looping = said = False
    for index, event in enumerate(events):
        works = isinstance(event, ActionEvent | Answer)
        goes_on = looping and works and event.id not in bonds.thinking
        recalled = said and isinstance(event, RecallEvent)
        if not (open_calls or goes_on or recalled):
            places.append(index)
        if isinstance(event, ActionEvent):
            open_calls.add(event.id)
        elif works:
            open_calls.discard(bonds.action_of[event.id])
        looping = goes_on or event.id in bonds.thinking
        said = recalled or (isinstance(event, MessageEvent) and is_user(event))
    return Cuts((*places, len(events)))


def is_user(event: MessageEvent) -> bool:
    """Whether the model hears this from a user; all but its own words it does."""
    return event.llm_message.role != "assistant"
