"""Outside judges of a stream: the validator, and the protocol's own types."""

from typing import Any

from ag_ui.core import Event
from ag_ui_validate.pytest_plugin import assert_valid_agui
from pydantic import BaseModel, TypeAdapter

EVENT: TypeAdapter[Event] = TypeAdapter(Event)

FEATURES = ["shared-state"]


def judge(events: list[dict[str, Any]]) -> None:
    """Raise AssertionError or ValidationError unless a stream is what AG-UI's clients take."""
    assert_valid_agui(events, features=FEATURES, max_warnings=0)
    for event in events:
        parsed = EVENT.validate_python(event)
        assert find_extra(parsed) == [], event
        assert find_nulls({key: it for key, it in event.items() if key != "snapshot"}) == [], event


def find_extra(model: Any) -> list[str]:
    """Return the fields of a parsed event that the protocol does not know."""
    if isinstance(model, list):
        return [name for each in model for name in find_extra(each)]
    if not isinstance(model, BaseModel):
        return []
    values = (getattr(model, name) for name in type(model).model_fields)
    return [*(model.model_extra or {}), *(name for each in values for name in find_extra(each))]


def find_nulls(value: Any, path: str = "") -> list[str]:
    """Return the paths of nulls: optional fields are left out."""
    match value:
        case None:
            return [path]
        case dict():
            return [it for key, each in value.items() for it in find_nulls(each, f"{path}/{key}")]
        case list():
            return [it for n, each in enumerate(value) for it in find_nulls(each, f"{path}/{n}")]
        case _:
            return []
