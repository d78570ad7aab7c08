"""Arguments are coerced to the schema where only one meaning is possible."""

import json
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from perdure.tools.arguments import json_schema, validate_arguments
from perdure.tools.shape import coerce

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


class Colour(StrEnum):
    RED = "red"


class Point(BaseModel):
    model_config = ConfigDict(extra="forbid")

    x: int
    labels: list[str] = []


class Everything(BaseModel):
    model_config = ConfigDict(extra="forbid")

    count: int = 1
    flag: bool = False
    ratio: float | None = None
    words: list[str] = []
    numbers: list[int] | None = None
    pair: tuple[int, str] = (0, "")
    point: Point | None = None
    points: list[Point] = []
    by_name: dict[str, int] = {}
    either: str | list[str] = ""
    number_or_flag: int | bool = 0
    colour: Colour = Colour.RED
    left: "Everything | None" = None


def taken(**arguments: Any) -> dict[str, Any]:
    return validate_arguments(Everything, arguments).model_dump(mode="json", exclude_unset=True)


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        ({"flag": "True", "words": "[]"}, {"flag": True, "words": []}),
        ({"ratio": "None"}, {"ratio": None}),
        ({"ratio": "null", "numbers": "[1, 2]"}, {"ratio": None, "numbers": [1, 2]}),
        ({"numbers": ["1", 2]}, {"numbers": [1, 2]}),
        ({"words": "['a', 'b']"}, {"words": ["a", "b"]}),
        ({"words": "only"}, {"words": ["only"]}),
        ({"numbers": 7}, {"numbers": [7]}),
        ({"numbers": "7"}, {"numbers": [7]}),
        ({"pair": '["1", "2"]'}, {"pair": [1, "2"]}),
        ({"point": '{"x": "1", "labels": "a"}'}, {"point": {"x": 1, "labels": ["a"]}}),
        ({"points": {"x": "1"}}, {"points": [{"x": 1}]}),
        ({"points": '[{"x": 1}, {"x": "2"}]'}, {"points": [{"x": 1}, {"x": 2}]}),
        ({"points": ['{"x": 1}']}, {"points": [{"x": 1}]}),
        ({"by_name": '{"a": "1"}'}, {"by_name": {"a": 1}}),
        ({"count": None, "words": ["a"]}, {"words": ["a"]}),
        ({"left": {"left": {"words": "a"}}}, {"left": {"left": {"words": ["a"]}}}),
    ],
)
def test_unambiguous_values_are_coerced(sent: dict[str, Any], meant: dict[str, Any]) -> None:
    assert taken(**sent) == meant


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        ({"words": "a, b"}, "`words`: input should be a valid list, got 'a, b'."),
        ({"words": '["a'}, "`words`: input should be a valid list, got '[\"a'."),
        ({"words": None, "count": "x"}, "`count`: input should be a valid integer, "),
        ({"numbers": "1,2"}, "`numbers`: input should be a valid list, got '1,2'."),
        ({"point": "x"}, "`point`: input should be a valid dictionary or instance of Point"),
        ({"point": {"x": None}}, "`point.x`: input should be a valid integer, got None."),
        ({"colour": "blue"}, "`colour`: input should be 'red', got 'blue'."),
    ],
)
def test_ambiguous_values_are_reported(sent: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the sentence is compared
        taken(**sent)
    assert str(raised.value).startswith(sentence)


def test_text_stays_text_where_text_may_be() -> None:
    assert taken(either='["a"]', words=["1", "true", "{}"]) == {
        "either": '["a"]',
        "words": ["1", "true", "{}"],
    }


def test_another_servers_schema_will_do() -> None:
    schema = {
        "type": "object",
        "properties": {
            "ids": {"allOf": [{"$ref": "#/definitions/many"}]},
            "mode": {"type": ["integer", "null"]},
            "level": {"enum": [1, 2]},
            "any": {},
            "yes": True,
        },
        "definitions": {"many": {"type": "array", "items": {"type": "integer"}}},
    }
    sent = {"ids": "3", "mode": "null", "level": "2", "any": "3", "yes": "4"}
    meant = {"ids": [3], "mode": None, "level": 2, "any": "3", "yes": "4"}
    assert coerce(sent, schema) == meant


def test_a_value_that_fits_two_alternatives_is_left_to_the_validator() -> None:
    numbers, texts = ({"type": "array", "items": {"type": kind}} for kind in ("integer", "string"))
    schema = {"properties": {"a": {"anyOf": [numbers, texts]}}}
    assert coerce({"a": ["1"]}, schema) == {"a": ["1"]}
    assert coerce({"a": ["1"]}, {"properties": {"a": numbers}}) == {"a": [1]}


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"$ref": "#/properties/a"}}},
        {"properties": {"a": {"$ref": "#/nowhere"}}},
        {"properties": {"a": {"$ref": "https://example.com/schema"}}},
        {"properties": {"a": {"anyOf": [{"$ref": "#/properties/a"}] * 50}}},
        {"properties": {"a": {"type": "unheard of"}}},
        {"properties": {"a": {"type": "array", "items": {"$ref": "#/properties/a"}}}},
    ],
)
def test_an_odd_schema_changes_nothing(schema: dict[str, Any]) -> None:
    assert coerce({"a": {"b": "1"}}, schema) == {"a": {"b": "1"}}


def test_arguments_nested_too_deeply_stay_as_they_came() -> None:
    deep: Any = {}
    for _ in range(800):
        deep = {"left": deep}
    assert coerce(deep, json_schema(Everything)) is deep


@settings(max_examples=50, deadline=None)
@given(st.dictionaries(st.sampled_from([*Everything.model_fields, "other"]), VALUES))
def test_coercion_gives_a_model_or_an_error_sentence(arguments: dict[str, Any]) -> None:
    before = json.dumps(arguments)
    try:
        message = ""
        taken(**arguments)
    except ValueError as error:
        message = str(error)
    assert "\n" not in message
    assert json.dumps(arguments) == before


@settings(max_examples=50, deadline=None)
@given(st.dictionaries(st.sampled_from([*Everything.model_fields, "other"]), VALUES))
def test_coercion_keeps_valid_values_and_is_idempotent(
    arguments: dict[str, Any],
) -> None:
    schema = json_schema(Everything)
    once = coerce(arguments, schema)
    assert coerce(once, schema) == once
