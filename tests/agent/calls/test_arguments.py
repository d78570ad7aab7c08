"""The parser of a model's arguments repairs unambiguous mistakes only."""

import contextlib
import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.agent.calls.arguments import parse_arguments

TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
    max_leaves=5,
)
OBJECTS = st.dictionaries(TEXTS, VALUES)
FEW = settings(max_examples=30, deadline=None)
JSON_LIKE = (
    st.text(st.sampled_from("{}[]\",:\\'\n\t 0123.eE-+truefalsnNaIity\0\ud800é\ufeff`<|>"))
    | st.text()
)


@FEW
@given(OBJECTS)
def test_valid_json_is_parsed_unchanged(arguments: dict[str, Any]) -> None:
    assert parse_arguments(json.dumps(arguments)) == arguments
    assert parse_arguments(json.dumps(arguments, ensure_ascii=False)) == arguments


@FEW
@given(OBJECTS, st.sampled_from(["```json\n{}\n```", "```\n{}```", " ```JSON \n{}\n``` \n"]))
def test_a_code_fence_is_removed(arguments: dict[str, Any], fence: str) -> None:
    assert parse_arguments(fence.replace("{}", json.dumps(arguments))) == arguments


@FEW
@given(OBJECTS)
def test_a_trailing_comma_is_removed(arguments: dict[str, Any]) -> None:
    others = {key: value for key, value in arguments.items() if key not in ("first", "last")}
    text = json.dumps({"first": [1], **others, "last": {"x": [",}", ",]"]}}, indent=1)
    with_commas = text.replace('",]"\n', '",]",\n').replace("]\n }\n}", "],\n },\n}")
    assert with_commas.count(",") == text.count(",") + 3
    assert parse_arguments(with_commas) == json.loads(text)


def test_raw_control_characters_in_strings_are_kept() -> None:
    assert parse_arguments('{"a": "x\n\ty\x01"}') == {"a": "x\n\ty\x01"}


@pytest.mark.parametrize("nothing", ["", "  \n", "null", "{}", "```json\n{}\n```"])
def test_empty_text_means_no_arguments(nothing: str) -> None:
    assert parse_arguments(nothing) == {}


@settings(deadline=None)
@given(JSON_LIKE)
def test_any_text_parses_as_an_object_or_raises_value_error(raw: str) -> None:
    try:
        arguments, problem = parse_arguments(raw), None
    except ValueError as error:
        arguments, problem = {}, str(error)
    assert isinstance(arguments, dict)
    json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode()
    assert problem is None or (problem.startswith("The arguments ") and problem.endswith("."))


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
def test_unreadable_arguments_raise_a_sentence(raw: str, sentence: str) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the whole sentence is compared
        parse_arguments(raw)
    assert str(raised.value) == sentence


@pytest.mark.parametrize(
    "hostile", ['{"' + '\\"' * 500_000, "{" + "," * 500_000, "```" + " \n" * 500_000 + "x```"]
)
def test_a_long_text_is_refused_in_linear_time(hostile: str) -> None:
    started = time.process_time()
    with pytest.raises(ValueError, match="The arguments are not valid JSON"):
        parse_arguments(hostile)
    assert time.process_time() - started < 20  # quadratic takes hours


@FEW
@given(OBJECTS, st.sampled_from(["{}}", "{}<|im_end|>", "{}</tool_call>", "{}\n```\nThat is all."]))
def test_text_behind_the_object_is_ignored(arguments: dict[str, Any], around: str) -> None:
    assert parse_arguments(around.replace("{}", json.dumps(arguments), 1)) == arguments


@FEW
@given(OBJECTS)
def test_an_object_that_was_quoted_is_read(arguments: dict[str, Any]) -> None:
    quoted = json.dumps(json.dumps(arguments))
    assert parse_arguments(quoted) == parse_arguments(json.dumps(quoted)) == arguments


@FEW
@given(OBJECTS)
def test_an_object_that_came_twice_or_behind_an_empty_one_is_read(
    arguments: dict[str, Any],
) -> None:
    text = json.dumps(arguments)
    assert parse_arguments(text + text) == arguments
    assert parse_arguments("{}" + text) == parse_arguments(text + "\n{}") == arguments


@pytest.mark.long
@FEW
@given(st.dictionaries(TEXTS, st.recursive(st.none() | st.booleans() | TEXTS, st.lists)))
def test_python_literals_are_parsed(arguments: dict[str, Any]) -> None:
    assert parse_arguments(_as_python(arguments)) == arguments


def _as_python(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_as_python(k)}: {_as_python(v)}' for k, v in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_as_python, value))}]"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"
    return repr(value)


@pytest.mark.parametrize(
    ("raw", "arguments"),
    [
        ("{'a': 'it\\'s \"so\"'}", {"a": 'it\'s "so"'}),
        ("{'a': '\\x41\\u00e9\\n'}", {"a": "Aé\n"}),
        ("{'a': True, \"b\": None, 'c': false}", {"a": True, "b": None, "c": False}),
        ('{"a": "True", "b": "it\'s"}', {"a": "True", "b": "it's"}),
        ('{"a": [1, {"b": "}"', {"a": [1, {"b": "}"}]}),
        ('{"a": 1', {"a": 1}),
        ('\ufeff{\x00"a": 1}\x00', {"a": 1}),
        ('{"a":\u00a01}', {"a": 1}),
        ("\"{'a': 1}\"", {"a": 1}),
        ("None", {}),
        ('""', {}),
    ],
)
def test_other_unambiguous_mistakes_are_repaired(raw: str, arguments: dict[str, Any]) -> None:
    assert parse_arguments(raw) == arguments


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ('{"a": 1}{"a": 2}', "The arguments hold more than one JSON object: make a call for each."),
        ('{"command": "echo "} done"}', "more text follows the object, near"),
        ('{"a": 1}, "b": 2}', "more text follows the object, near"),
        ("{'a': 'it's'}", "are not valid JSON"),
        ('{"a": "\\d"}', "Invalid .escape"),
        ('{"a": "half', "Unterminated string"),
        ('{"a": 1,', "Expecting property name"),
        ('{"a":', "Expecting value"),
        ('{"a"', "Expecting ':' delimiter at line 1, column 5, near '{\"a\"'"),
        ("{", "Expecting property name"),
        ("ls -la", "Expecting value"),
    ],
)
def test_ambiguous_arguments_are_refused(raw: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_arguments(raw)


@pytest.mark.parametrize("raw", ["", " \n", '{"a": 1', '{"a": [1]', '{}{"a": 1', '{"a": "half'])
def test_cut_off_arguments_are_not_completed(raw: str) -> None:
    with pytest.raises(ValueError, match="The arguments "):
        parse_arguments(raw, cut=True)


def test_an_object_complete_before_the_cut_is_parsed() -> None:
    assert parse_arguments('{"a": [1,]}', cut=True) == {"a": [1]}


@FEW
@given(OBJECTS.filter(bool), st.data())
def test_no_part_of_an_object_is_taken_for_the_whole(
    arguments: dict[str, Any], data: st.DataObject
) -> None:
    text = json.dumps(arguments)
    part = text[: data.draw(st.integers(0, len(text) - 1))]
    with pytest.raises(ValueError, match="The arguments "):
        parse_arguments(part, cut=True)


@pytest.mark.parametrize(
    "long", ["{}" * 50_000, "'" + "\\'" * 500_000, '"\\' * 500_000, '{"a":1}' + "x" * 500_000 + '"']
)
def test_any_long_text_is_read_in_linear_time(long: str) -> None:
    started = time.process_time()
    with contextlib.suppress(ValueError):
        parse_arguments(long)
    assert time.process_time() - started < 20  # quadratic takes hours
