"""The parts of a turn, which each protocol shows in its own way.

They follow from the log alone: whoever reads a turn, whenever and in whatever process, gets the
same parts in the same order, so that their number is a cursor.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from perdure.agent.loop.start import PendingCall
from perdure.agent.loop.status import Status
from perdure.events.usage import Usage

Approval: TypeAlias = Literal["none", "possible", "answered"]


@dataclass(frozen=True)
class Text:
    """A piece of what the agent says; the pieces of an item together are its text.

    The piece that is `last` ends the item, and may be empty. It has the text of the log as its
    `whole`, and says whether it is `final`: an answer, and not what the agent says before it goes
    on. Where a model was asked again and answers in other words, the pieces that were sent cannot
    be taken back: then the last one has the whole in a line of its own.
    """

    item_id: str
    text: str
    last: bool = False
    final: bool = False
    whole: str = ""


@dataclass(frozen=True)
class Reasoning:
    """The reasoning of the model for what it says or does.

    It is known with the response alone, when the words have been sent: it follows them.
    """

    item_id: str
    text: str


@dataclass(frozen=True)
class Called:
    """The agent calls a tool; `arguments` are those that the model sent, as JSON."""

    item_id: str
    call_id: str
    tool_name: str
    arguments: str
    approval: Approval = "none"
    """Whether a person may have to approve it, or has answered: then it is called once more."""


@dataclass(frozen=True)
class Returned:
    """A call has its result, or an error or a person's rejection in its place."""

    call_id: str
    tool_name: str
    text: str
    is_error: bool = False


@dataclass(frozen=True)
class Condensed:
    """Events have left the view of the model; a `summary` may be in their place."""

    item_id: str
    count: int
    summary: str | None


@dataclass(frozen=True)
class Asked:
    """The turn ends with calls that wait for a person."""

    calls: tuple[PendingCall, ...]


@dataclass(frozen=True)
class Failed:
    """The turn has failed, or was suspended at a limit of its user's; it ends."""

    code: str
    detail: str


@dataclass(frozen=True)
class Ended:
    """The end of the turn, always its last part; `usage` is that of the turn."""

    status: Status
    reason: str | None
    usage: Usage
    seq: int
    """The last slot of the turn."""


Part: TypeAlias = Text | Reasoning | Called | Returned | Condensed | Asked | Failed | Ended
