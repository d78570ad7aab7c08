"""Parsing of messages and inputs that are sent to a conversation's workflow."""

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError
from temporalio.exceptions import ApplicationError

from perdure.agent.loop.inbox import (
    InboxItem,
    RefusedInput,
    UserMessage,
    WebhookFailure,
    find_message_error,
)
from perdure.agent.loop.start import Start
from perdure.events.validation_errors import describe_errors

MESSAGE_FIELDS = "text, images, message_id, sender and run"


def parse_message(message: Any) -> UserMessage:
    """Parse a message, a bare text or fields. Raises ApplicationError if it is invalid."""
    parsed = _parse(message)
    problem = parsed if isinstance(parsed, str) else find_message_error(parsed)
    if problem is not None:
        raise bad_message(problem)
    assert isinstance(parsed, UserMessage), "an invalid message has an error"
    return parsed


def bad_message(sentence: str) -> ApplicationError:
    return ApplicationError(sentence, type="BadMessage", non_retryable=True)


def to_inbox_item(message: Any) -> InboxItem:
    """Parse a message for the inbox; an invalid one becomes a `Refused` item.

    The sender of a signal gets no answer, so the log says what was wrong.
    """
    parsed = _parse(message)
    problem = parsed if isinstance(parsed, str) else find_message_error(parsed)
    if problem is not None:
        return RefusedInput(detail=problem)
    assert isinstance(parsed, UserMessage), "an invalid message has an error"
    return parsed


def parse_webhook_failure(failure: Any) -> InboxItem:
    """Parse the signal that a webhook has not taken an event."""
    try:
        return WebhookFailure.model_validate(failure)
    except ValidationError as error:
        return RefusedInput(detail=f"This is no failure of a webhook ({describe_errors(error)}).")


def parse_start(sent: Sequence[Any]) -> Start:
    """Parse the input of a workflow. Raises ApplicationError, which ends the workflow.

    Any other error would make Temporal retry the workflow task for ever.
    """
    try:
        [start] = sent
        return Start.model_validate(start)
    except ValidationError as error:
        problem = describe_errors(error)
    except ValueError:
        problem = f"there are {len(sent)} inputs"
    raise ApplicationError(
        "A conversation is started with one object, {conversation_id, user_id, spec} "
        f"({problem}): start it with `perdure run` or a client.",
        type="BadStart",
        non_retryable=True,
    )


def _parse(message: Any) -> UserMessage | str:
    if isinstance(message, str):
        return UserMessage(text=message)
    try:
        return UserMessage.model_validate(message)
    except ValidationError as error:
        return (
            f"A message is a text, or an object with {MESSAGE_FIELDS} ({describe_errors(error)})."
        )
