"""Making events with a new id and the current time."""

from datetime import UTC, datetime
from typing import Any, TypeVar
from uuid import uuid4

from pydantic import ValidationError

from perdure.client.events.spellings import normalize_fields
from perdure.errors import Invalid
from perdure.events.base import TIMESTAMP_FORMAT, EventBase
from perdure.events.validation_errors import describe_errors

MadeEvent = TypeVar("MadeEvent", bound=EventBase)


def make_event(event_class: type[MadeEvent], /, **fields: Any) -> MadeEvent:
    """Make an event, with a new id and the current time where none are given.

    The fields may be spelt in every way that `read_event` accepts. Raises Invalid for a field that
    the class does not have, or whose value does not fit.
    """
    given = {"id": str(uuid4()), "timestamp": utc_now(), **fields}
    kind = event_class.model_fields["kind"].default
    try:
        return event_class.model_validate(normalize_fields({"kind": kind, **given}))
    except ValidationError as error:
        name = event_class.__name__
        raise Invalid(f"This is no {name}: {describe_errors(error)}.") from error


def utc_now() -> str:
    """Return the current time as the timestamp of an event."""
    return datetime.now(UTC).strftime(TIMESTAMP_FORMAT)
