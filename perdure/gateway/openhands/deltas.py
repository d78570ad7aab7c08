"""The words of the model as they come, for clients that cannot take a word back."""

from dataclasses import dataclass, field

from perdure.api.frames import DeltaFrame
from perdure.events.content import join_text
from perdure.events.entry import Entry
from perdure.events.event import agent_text
from perdure.events.messages import MessageEvent
from perdure.events.tools import ActionEvent


@dataclass
class _Item:
    """A step at work: its text as far as it is known, and what the client has of it."""

    known: str = ""
    sent: str = ""


@dataclass
class Deltas:
    """The words of each step at work: all that is sent of one together is its text.

    Nothing more is sent of a step whose model was asked again and said something else.
    """

    _items: dict[str, _Item] = field(default_factory=dict)

    def take(self, frame: DeltaFrame) -> str:
        """Return what is to be sent now; it may be empty."""
        item = self._items.setdefault(f"{frame.run}:{frame.item_id}", _Item())
        if frame.offset > len(item.known):  # the client has attached in the middle
            return ""
        item.known = item.known[: frame.offset] + frame.text
        return _send_rest(item, item.known)

    def end(self, entry: Entry) -> str:
        """Return what is still to be sent of the step whose event this is; it may be empty."""
        origin = entry.origin
        key = f"{origin.run}:{origin.activity.partition(' ')[0]}"
        item = self._items.pop(key, None)
        match entry.event:
            case MessageEvent(source="agent") as event if item is not None:
                return _send_rest(item, agent_text(event))
            case ActionEvent(thought=thought) if item is not None:
                return _send_rest(item, join_text(thought))
            case _:
                return ""


def _send_rest(item: _Item, text: str) -> str:
    if not text.startswith(item.sent):
        return ""
    rest, item.sent = text[len(item.sent) :], text
    return rest
