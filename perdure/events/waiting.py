"""Events of waiting: for a time, for a signal, for the answer of a person."""

import json
from typing import Any, Literal

from pydantic import JsonValue

from perdure.events.base import ActorEvent, EventBase, Source, Timestamp, shorten_name
from perdure.events.status import describe_time, describe_wait

MAX_SHOWN_DATA_CHARS = 400
"""Length limit of a signal's data where a person reads what happened."""


class WaitEvent(EventBase):
    """The agent waits, by the call of `action_id`: until a time, for a signal, or for either.

    The result of that call ends it.
    """

    source: Source = "agent"
    kind: Literal["WaitEvent"] = "WaitEvent"
    action_id: str
    tool_call_id: str
    until: Timestamp | None = None
    """When the wait ends at the latest (UTC)."""
    signal: str | None = None
    """The name of the signal that ends it."""

    def describe(self) -> tuple[str, str]:
        return "agent", self.describe_wait()

    def export_note(self) -> str:
        return f"The agent {self.describe_wait()}."

    def describe_wait(self) -> str:
        """Describe what is waited for, in words that follow `The agent`."""
        return f"waits {describe_wait(self.until, self.signal)}"

    def summary_fields(self) -> dict[str, Any]:
        value = {"until": self.until, "signal": self.signal}
        return _call_fields(self, {key: it for key, it in value.items() if it is not None})


class QuestionEvent(EventBase):
    """The agent asks a person, by the call of `action_id`, and waits; its result has the answer."""

    source: Source = "agent"
    kind: Literal["QuestionEvent"] = "QuestionEvent"
    action_id: str
    tool_call_id: str
    question: str
    choices: tuple[str, ...] = ()
    """The answers to choose from; a person may answer in other words."""
    until: Timestamp | None = None
    """When the agent goes on without an answer (UTC)."""

    def describe(self) -> tuple[str, str]:
        choices = (f"  {number}. {choice}" for number, choice in enumerate(self.choices, 1))
        until = [f"  (until {describe_time(self.until)})"] if self.until else []
        return "agent", "\n".join([f"asks: {self.question}", *choices, *until])

    def export_note(self) -> str:
        choices = f" ({' / '.join(self.choices)})" if self.choices else ""
        return f"The agent asks: {self.question}{choices}"

    def summary_fields(self) -> dict[str, Any]:
        choices = list(self.choices) or None
        value = {"question": self.question, "choices": choices, "until": self.until}
        return _call_fields(self, {key: it for key, it in value.items() if it is not None})


class SignalEvent(ActorEvent):
    """Somebody sent a signal; a wait for its `name` gets the `data`, now or later."""

    source: Source = "user"
    kind: Literal["SignalEvent"] = "SignalEvent"
    name: str
    data: JsonValue = None
    signal_id: str | None = None
    """The sender's id for it: the same id is not recorded twice."""

    def describe(self) -> tuple[str, str]:
        return "user", f"signal {self.name}{self._shown_data()}"

    def export_note(self) -> str:
        return f"The signal {self.name} came{self._shown_data()}."

    def summary_fields(self) -> dict[str, Any]:
        ids = {} if self.signal_id is None else {"message_id": shorten_name(self.signal_id)}
        return {"key": shorten_name(self.name), **ids}

    def _shown_data(self) -> str:
        if self.data is None:
            return ""
        text = json.dumps(self.data, ensure_ascii=False)
        rest = len(text) - MAX_SHOWN_DATA_CHARS
        return f": {text if rest <= 0 else f'{text[:MAX_SHOWN_DATA_CHARS]}…'}"


def _call_fields(event: WaitEvent | QuestionEvent, value: dict[str, Any]) -> dict[str, Any]:
    return {
        "action_id": shorten_name(event.action_id),
        "tool_call_id": shorten_name(event.tool_call_id),
        "value": value,
    }
