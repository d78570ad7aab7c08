"""What a model writes as arguments is read where it can be meant in one way only."""

import json
import time
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from tools.arguments import arguments_of, schema_of, validated

TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
    max_leaves=5,
)
OBJECTS = st.dictionaries(TEXTS, VALUES)
FEW = settings(max_examples=30, deadline=None)
JSON_LIKE = st.text(st.sampled_from('{}[]",:\\`\n\t 0123.eE-+truefalsnNaIity\0\ud800é')) | st.text()


@FEW
@given(OBJECTS)
def test_json_is_read_as_it_is(arguments: dict[str, Any]) -> None:
    assert arguments_of(json.dumps(arguments)) == arguments
    assert arguments_of(json.dumps(arguments, ensure_ascii=False)) == arguments


@FEW
@given(OBJECTS, st.sampled_from(["```json\n{}\n```", "```\n{}```", " ```JSON \n{}\n``` \n"]))
def test_a_code_fence_is_taken_off(arguments: dict[str, Any], fence: str) -> None:
    assert arguments_of(fence.replace("{}", json.dumps(arguments))) == arguments


@FEW
@given(OBJECTS)
def test_a_comma_after_the_last_item_is_taken_off(arguments: dict[str, Any]) -> None:
    text = json.dumps({"first": [1], **arguments, "last": {"x": [",}", ",]"]}}, indent=1)
    with_commas = text.replace('",]"\n', '",]",\n').replace("]\n }\n}", "],\n },\n}")
    assert with_commas.count(",") == text.count(",") + 3
    assert arguments_of(with_commas) == json.loads(text)


def test_raw_control_characters_in_strings_are_kept() -> None:
    assert arguments_of('{"a": "x\n\ty\x01"}') == {"a": "x\n\ty\x01"}


@pytest.mark.parametrize("nothing", ["", "  \n", "null", "{}", "```json\n{}\n```"])
def test_nothing_means_no_arguments(nothing: str) -> None:
    assert arguments_of(nothing) == {}


@settings(deadline=None)
@given(JSON_LIKE)
def test_whatever_comes_it_is_an_object_or_a_value_error(raw: str) -> None:
    try:
        arguments, said = arguments_of(raw), None
    except ValueError as error:
        arguments, said = {}, str(error)
    assert isinstance(arguments, dict)
    json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode()
    assert said is None or (said.startswith("The arguments ") and said.endswith("."))


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        ("[1]", "The arguments must be one JSON object, not a list."),
        ('"x"', "The arguments must be one JSON object, not a string."),
        ("7", "The arguments must be one JSON object, not a number."),
        ("true", "The arguments must be one JSON object, not a boolean."),
        (
            '{"a": 1 "b": 2}',
            "The arguments are not valid JSON: Expecting ',' delimiter at line 1, column 9, near "
            '\'{"a": 1 "b": 2}\'. Send one JSON object.',
        ),
        (
            '{"a": NaN}',
            "The arguments hold NaN or a number without bounds: send a plain number or null.",
        ),
        (
            '{"a": 1e999}',
            "The arguments hold NaN or a number without bounds: send a plain number or null.",
        ),
        (
            '{"a": "\\ud83d"}',
            "The arguments hold half a surrogate pair: write the character itself, or both halves.",
        ),
        (
            '{"a":' * 100_000,
            "The arguments are nested too deeply: send a flatter object.",
        ),
        (
            '{"a": %s}' % ("9" * 5000),
            "The arguments hold a number of too many digits: send it as a string.",
        ),
    ],
)
def test_what_cannot_be_read_is_told_in_a_sentence(raw: str, sentence: str) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the whole sentence is compared
        arguments_of(raw)
    assert str(raised.value) == sentence


@pytest.mark.parametrize(
    "hostile", ['{"' + '\\"' * 500_000, "{" + "," * 500_000, "```" + " \n" * 500_000 + "x```"]
)
def test_a_long_text_is_refused_in_linear_time(hostile: str) -> None:
    started = time.process_time()
    with pytest.raises(ValueError, match="The arguments are not valid JSON"):
        arguments_of(hostile)
    assert time.process_time() - started < 20  # quadratic takes hours


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
    model = validated(Model, {"title": "t", "count": "3", "ratio": "0.5"})
    assert (model.count, model.ratio) == (3, 0.5)


def test_text_is_taken_for_the_list_or_object_that_was_due() -> None:
    model = validated(Model, {"title": "[]", "tags": '["a", "b"]', "inner": '{"depth": "2"}'})
    assert model.title == "[]"
    assert model.tags == ["a", "b"]
    assert model.inner == Inner(depth=2)
    assert validated(Model, {"title": "t", "words": '["a"]'}).words == '["a"]'


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
def test_what_does_not_fit_is_told_in_a_sentence(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the whole sentence is compared
        validated(Model, arguments)
    assert str(raised.value) == sentence


@FEW
@given(OBJECTS)
def test_validation_raises_nothing_but_a_value_error(arguments: dict[str, Any]) -> None:
    said = ""
    try:
        validated(Model, {"title": "t", **arguments})
    except ValueError as error:
        said = str(error)
    assert "https://" not in said
    assert "\n" not in said


def test_a_schema_has_no_titles_but_those_that_are_arguments() -> None:
    schema = schema_of(Model)
    assert schema["properties"]["title"] == {"type": "string", "description": "A name."}
    assert schema["properties"]["count"] == {"type": "integer", "minimum": 1, "default": 1}
    assert schema["$defs"]["Inner"] == {
        "type": "object",
        "properties": {"depth": {"type": "integer"}},
        "required": ["depth"],
    }
    assert set(schema) == {"type", "properties", "required", "$defs", "additionalProperties"}
