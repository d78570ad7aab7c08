"""What steers a conversation: people, limits, judgements, failures."""

from typing import Any, Literal, Self

from pydantic import model_validator

from events.base import EventBase, Source
from events.risk import Risk


class PauseEvent(EventBase):
    """Somebody asked for a pause."""

    source: Source = "user"
    kind: Literal["PauseEvent"] = "PauseEvent"


class InterruptEvent(EventBase):
    """Somebody stopped what was running."""

    source: Source = "user"
    kind: Literal["InterruptEvent"] = "InterruptEvent"


class SecurityAnalysisEvent(EventBase):
    """How risky an analyzer found each action; `risks` is keyed by action id."""

    source: Source = "environment"
    kind: Literal["SecurityAnalysisEvent"] = "SecurityAnalysisEvent"
    analyzer: str
    policy: str
    risks: dict[str, Risk]


class StuckEvent(EventBase):
    """The agent goes in circles; the events from `first_seq` to `last_seq` show it."""

    source: Source = "environment"
    kind: Literal["StuckEvent"] = "StuckEvent"
    pattern: str
    first_seq: int
    last_seq: int
    count: int


class ConversationStateUpdateEvent(EventBase):
    """Something about the conversation itself changed: `key` now has `value`."""

    source: Source = "environment"
    kind: Literal["ConversationStateUpdateEvent"] = "ConversationStateUpdateEvent"
    key: str
    value: Any = None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        """What is decided by must be what it is taken for."""
        match self.key, self.value:
            case ("opened", {"run_id": str()}) | ("spec", dict()) | ("status", str()):
                return self
            case "confirmed", list(seqs) | tuple(seqs) if all(isinstance(n, int) for n in seqs):
                return self
            case "opened" | "spec" | "status" | "confirmed", _:
                raise ValueError(f"this is no value of {self.key!r}")
        return self


class ConversationErrorEvent(EventBase):
    """The turn cannot go on; `detail` says what to do."""

    source: Source = "environment"
    kind: Literal["ConversationErrorEvent"] = "ConversationErrorEvent"
    code: str
    detail: str
