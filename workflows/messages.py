"""Messages as people and programs send them: a bare text, or fields."""

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError
from temporalio.exceptions import ApplicationError

from agent.inbox import Item, Refused, Said, fault
from agent.misfit import misfit
from agent.start import Start

FIELDS = "text, images, message_id and sender"


def said(message: Any) -> Said:
    """The message that was sent; raises ApplicationError with a sentence where it is none."""
    read = _read(message)
    wrong = read if isinstance(read, str) else fault(read)
    if wrong is not None:
        raise ApplicationError(wrong, type="BadMessage", non_retryable=True)
    assert isinstance(read, Said), "what is not a message has a fault"
    return read


def accept(message: Any) -> Item:
    """The message for the inbox; one that cannot be recorded leaves a note instead.

    The sender of a signal cannot be told: the log is.
    """
    read = _read(message)
    wrong = read if isinstance(read, str) else fault(read)
    if wrong is not None:
        return Refused(detail=wrong)
    assert isinstance(read, Said), "what is not a message has a fault"
    return read


def start_of(sent: Sequence[Any]) -> Start:
    """What a workflow was started with; raises ApplicationError, which ends it.

    An input that the code cannot take would fail its task for ever, and nobody would be told.
    """
    try:
        [start] = sent
        return Start.model_validate(start)
    except ValidationError as error:
        wrong = misfit(error)
    except ValueError:
        wrong = f"there are {len(sent)} inputs"
    raise ApplicationError(
        f"A conversation is started with one object, {{conversation_id, user_id, spec}} ({wrong}): "
        "start it with `perdure run` or a client.",
        type="BadStart",
        non_retryable=True,
    )


def _read(message: Any) -> Said | str:
    if isinstance(message, str):
        return Said(text=message)
    try:
        return Said.model_validate(message)
    except ValidationError as error:
        return f"A message is a text, or an object with {FIELDS} ({misfit(error)})."
