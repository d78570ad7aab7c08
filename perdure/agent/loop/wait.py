"""The wait of a conversation, and the signals that it keeps for later ones."""

from perdure.events.base import Frozen
from perdure.events.status import WaitDetail

MAX_KEPT_SIGNALS = 50
"""Signals that are kept until a wait gets them: a sender is told that another one is too many."""


class Wait(Frozen):
    """The wait that has begun and not ended: for a time, a signal, or the answer to a question."""

    seq: int
    """The slot of the event that says so."""
    action_id: str
    tool_call_id: str
    until: str | None = None
    signal: str | None = None
    question: str | None = None
    choices: tuple[str, ...] = ()

    def is_over(self, at: str | None) -> bool:
        """Tell whether its time has come, at this time in UTC."""
        return self.until is not None and at is not None and self.until <= at

    def detail(self) -> WaitDetail:
        shared = self.model_dump(exclude={"action_id", "tool_call_id"})
        return WaitDetail(call=self.tool_call_id, **shared)


class KeptSignal(Frozen):
    """A signal that nobody has waited for yet; the log has its data, in slot `seq`."""

    name: str
    seq: int


def remembered_name(signal_id: str) -> str:
    """Return the name of a signal among the ids of messages that a conversation remembers."""
    return f"signal {signal_id}"
