"""Arguments are validated, and errors are sentences."""

from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from perdure.tools.arguments import json_schema, validate_arguments

TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
    max_leaves=5,
)
OBJECTS = st.dictionaries(TEXTS, VALUES)
FEW = settings(max_examples=30, deadline=None)


class Inner(BaseModel):
    depth: int


class Model(BaseModel):
    """Not for the model."""

    model_config = ConfigDict(extra="forbid")

    title: str = Field(description="A name.")
    count: Annotated[int, Field(ge=1)] = 1
    ratio: float | None = None
    tags: list[str] = []
    inner: Inner | None = None
    words: str | list[str] = ""


def test_text_is_taken_for_the_number_that_was_due() -> None:
    model = validate_arguments(Model, {"title": "t", "count": "3", "ratio": "0.5"})
    assert (model.count, model.ratio) == (3, 0.5)


def test_text_is_taken_for_the_list_or_object_that_was_due() -> None:
    model = validate_arguments(
        Model, {"title": "[]", "tags": '["a", "b"]', "inner": '{"depth": "2"}'}
    )
    assert model.title == "[]"
    assert model.tags == ["a", "b"]
    assert model.inner == Inner(depth=2)
    assert validate_arguments(Model, {"title": "t", "words": '["a"]'}).words == '["a"]'


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "`title` is missing."),
        ({"title": 3}, "`title`: input should be a valid string, got 3."),
        ({"title": "t", "tags": "[nearly"}, "`tags`: input should be a valid list, got '[nearly'."),
        (
            {"title": "t", "tags": ["a", 2]},
            "`tags.1`: input should be a valid string, got 2.",
        ),
        ({"title": "t", "inner": {}}, "`inner.depth` is missing."),
        (
            {"title": "t", "count": 0, "other": 1},
            "`count`: input should be greater than or equal to 1, got 0; `other` is unknown here, "
            "use only `title`, `count`, `ratio`, `tags`, `inner`, `words`.",
        ),
        (
            {"title": "t", "count": "x" * 1000},
            "`count`: input should be a valid integer, unable to parse string as an integer, got "
            f"'{'x' * 59}... (1002 characters).",
        ),
    ],
)
def test_invalid_values_are_reported_in_a_sentence(
    arguments: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the whole sentence is compared
        validate_arguments(Model, arguments)
    assert str(raised.value) == sentence


@FEW
@given(OBJECTS)
def test_validation_raises_nothing_but_a_value_error(arguments: dict[str, Any]) -> None:
    message = ""
    try:
        validate_arguments(Model, {"title": "t", **arguments})
    except ValueError as error:
        message = str(error)
    assert "https://" not in message
    assert "\n" not in message


def test_a_schema_has_no_titles_but_those_that_are_arguments() -> None:
    schema = json_schema(Model)
    assert schema["properties"]["title"] == {"type": "string", "description": "A name."}
    assert schema["properties"]["count"] == {"type": "integer", "minimum": 1, "default": 1}
    assert schema["$defs"]["Inner"] == {
        "type": "object",
        "properties": {"depth": {"type": "integer"}},
        "required": ["depth"],
    }
    assert set(schema) == {"type", "properties", "required", "$defs", "additionalProperties"}
