"""Signals to conversations, as a program sends them."""

from typing import Any

from pydantic import ValidationError

from perdure.agent.loop.inbox import Signal
from perdure.agent.loop.signals import find_signal_error
from perdure.client.ids import new_message_id
from perdure.errors import Invalid
from perdure.events.validation_errors import describe_errors


def build_signal(name: str, data: Any, signal_id: str | None) -> dict[str, Any]:
    """Build a signal; it has an id. Raises Invalid."""
    try:
        signal = Signal(name=name, data=data, signal_id=signal_id or new_message_id())
    except ValidationError as error:
        raise Invalid(f"The data of a signal is JSON ({describe_errors(error)}).") from error
    if problem := find_signal_error(signal):
        raise Invalid(problem)
    return signal.model_dump(include={"name", "data", "signal_id"})
