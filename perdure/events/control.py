"""Events that steer a conversation: requests, limits, ratings, failures."""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import model_validator

from perdure.events.base import ActorEvent, EventBase, Source, shorten_name
from perdure.events.risk import Risk
from perdure.events.status import StatusDetail
from perdure.wording import count

MAX_KEPT_TITLE_CHARS = 120
MAX_DETAIL_CHARS = 500  # of an error in its summary

PROMPT_FIELDS = {"system_prompt", "instructions"}
"""Fields of an agent that are texts of any length, and decide nothing."""

LOG_FIELDS = PROMPT_FIELDS | {"delegates", "sources"}
"""Fields of an agent that decide nothing, so that the log alone has them, and no state."""

TOO_MANY_CONVERSATIONS = "too many conversations of the user were at work"


class PauseEvent(ActorEvent):
    """A person paused the conversation."""

    source: Source = "user"
    kind: Literal["PauseEvent"] = "PauseEvent"

    def describe(self) -> tuple[str, str]:
        return "user", "paused"

    def export_note(self) -> str:
        return "The user asked for a pause."


class InterruptEvent(ActorEvent):
    """A person stopped what was running, or a limit did, which `reason` names."""

    source: Source = "user"
    kind: Literal["InterruptEvent"] = "InterruptEvent"
    reason: Literal["too_many_conversations"] | None = None

    def describe(self) -> tuple[str, str]:
        if self.reason is not None:
            return "system", f"suspended: {TOO_MANY_CONVERSATIONS}"
        return "user", "interrupted"

    def export_note(self) -> str:
        if self.reason is not None:
            return f"The conversation was suspended: {TOO_MANY_CONVERSATIONS}."
        return "The user stopped what was running."

    def summary_fields(self) -> dict[str, Any]:
        return {} if self.reason is None else {"key": self.reason}


class SecurityAnalysisEvent(EventBase):
    """The ratings of an analyzer; `risks` is keyed by action id."""

    kind: Literal["SecurityAnalysisEvent"] = "SecurityAnalysisEvent"
    analyzer: str
    policy: str
    risks: dict[str, Risk]

    def describe(self) -> tuple[str, str]:
        return "system", f"risk {', '.join(self.risks.values())}, by {self.analyzer}"

    def export_note(self) -> str:
        return f"Risk {', '.join(self.risks.values())}, by {self.analyzer}."

    def summary_fields(self) -> dict[str, Any]:
        return {"value": {shorten_name(action): risk for action, risk in self.risks.items()}}


class StuckEvent(EventBase):
    """The agent is stuck; the events from `first_seq` to `last_seq` show it."""

    kind: Literal["StuckEvent"] = "StuckEvent"
    pattern: str
    first_seq: int
    last_seq: int
    count: int

    def describe(self) -> tuple[str, str]:
        return "system", f"stuck: {self._what()}"

    def export_note(self) -> str:
        return f"The agent went in circles: {self._what()}."

    def summary_fields(self) -> dict[str, Any]:
        return {"key": shorten_name(self.pattern), "value": self._where()}

    def _what(self) -> str:
        return f"{self.pattern}, {count(self.count, 'time')}, {self._where()}"

    def _where(self) -> str:
        return f"events {self.first_seq} to {self.last_seq}"


class ConversationStateUpdateEvent(ActorEvent):
    """A property of the conversation changed: `key` now has `value`."""

    kind: Literal["ConversationStateUpdateEvent"] = "ConversationStateUpdateEvent"
    key: str
    value: Any = None
    status_detail: StatusDetail | None = None
    """Of a status: what a client is told beside it."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        """Check the values that decisions depend on."""
        match self.key, self.value:
            case ("opened", {"run_id": str()}) | ("spec", dict()) | ("status", str()):
                return self
            case "repeated", {"message_id": str(), "seq": int()}:
                return self
            case "confirmed", list(seqs) | tuple(seqs) if all(isinstance(n, int) for n in seqs):
                return self
            case "opened" | "spec" | "status" | "confirmed" | "repeated", _:
                raise ValueError(f"this is no value of {self.key!r}")
        return self

    def state_changes(self) -> Mapping[str, Any]:
        return self.value if self.key == "state" and isinstance(self.value, dict) else {}

    def summary_fields(self) -> dict[str, Any]:
        return {"key": shorten_name(self.key), "value": self._decisive_value()}

    def _decisive_value(self) -> Any:
        """Return the values that decisions depend on: of a spec not what only the log has."""
        match self.key:
            case "title":
                return str(self.value)[:MAX_KEPT_TITLE_CHARS]
            case "opened":  # the sandbox decides nothing
                return {key: self.value[key] for key in ("run_id", "resumed") if key in self.value}
            case "spec":
                return {key: self.value[key] for key in self.value if key not in LOG_FIELDS}
            case "repository":  # what is not of a clone decides nothing
                return self.value.get("url") if isinstance(self.value, dict) else None
            case "status" | "confirmed" | "repeated" | "state_refused":
                return self.value
        return None


class ConversationErrorEvent(EventBase):
    """The turn cannot go on; `detail` says what to do."""

    kind: Literal["ConversationErrorEvent"] = "ConversationErrorEvent"
    code: str
    detail: str

    def describe(self) -> tuple[str, str]:
        return "error", self.export_note()

    def export_note(self) -> str:
        return f"{self.code}: {self.detail}"

    def summary_fields(self) -> dict[str, Any]:
        detail = self.detail
        cut = detail if len(detail) <= MAX_DETAIL_CHARS else f"{detail[: MAX_DETAIL_CHARS - 1]}…"
        return {"key": shorten_name(self.code), "value": cut, "is_error": True}
