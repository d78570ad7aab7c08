"""The patience of those who wait for a turn while Temporal does not answer."""

from dataclasses import dataclass
from time import monotonic

from perdure.errors import Unreachable

OUTAGE_PATIENCE = 60.0
"""Seconds without an answer of Temporal after which nobody waits any more."""


@dataclass
class Outage:
    """An outage of Temporal, as long as one lasts."""

    patience: float = OUTAGE_PATIENCE
    began: float | None = None

    def end(self) -> None:
        self.began = None

    def bear(self, error: Unreachable, conversation_id: str) -> None:
        """Raise Unreachable if the outage has lasted too long."""
        self.began = monotonic() if self.began is None else self.began
        if monotonic() - self.began >= self.patience:
            hint = f"The turn goes on when it does: `perdure watch {conversation_id}` shows it."
            message = f"Temporal has not answered for {self.patience:g} s."
            raise Unreachable(message, hint) from error
