"""Tool calls are formatted as text and parsed from it."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.models.prompt_tool_parser import (
    describe_tools,
    format_call,
    parse_call,
    text_before_call,
)
from tests.models.requests import calm

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "description": "What to say."},
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "loud": {"type": "boolean"},
        "range": {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]},
        "plan": {"type": "array", "items": {"$ref": "#/$defs/Step"}},
        "mode": {"$ref": "#/$defs/Mode"},
        "any": True,
    },
    "required": ["text"],
    "$defs": {
        "Mode": {"type": "string", "enum": ["a", "b"]},
        "Step": {"type": "object", "properties": {"title": {"type": "string"}}},
    },
}
TOOLS = {"say": SCHEMA}

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
texts = st.lists(words | st.sampled_from(["\n", "</parameter>", "  ", "<b>", "5"])).map("".join)
arguments = st.fixed_dictionaries(
    {},
    optional={
        "text": texts,
        "count": st.integers(),
        "ratio": st.floats(allow_nan=False, allow_infinity=False),
        "loud": st.booleans(),
        "range": st.none() | st.lists(st.integers(), max_size=3),
        "plan": st.lists(st.fixed_dictionaries({"title": words}), max_size=2),
    },
)


def call(text: str, cut: bool = False) -> tuple[str, str, Any]:
    tool_call = parse_call(text, TOOLS, truncated=cut)
    assert tool_call is not None
    return tool_call.text_before, tool_call.name, json.loads(tool_call.arguments)


@calm
@given(arguments)
def test_a_formatted_call_is_parsed_again(values: dict[str, Any]) -> None:
    written = format_call("say", json.dumps(values))
    assert call(f"Look:\n\n{written}") == ("Look:", "say", values)


@calm
@given(arguments)
def test_a_stop_sequence_loses_nothing_of_a_call(values: dict[str, Any]) -> None:
    stopped = format_call("say", json.dumps(values)).removesuffix("</function>")
    assert call(stopped) == ("", "say", values)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("<function=say>\n<parameter=text>hi</parameter>\n</", {"text": "hi"}),
        ("<function=say>\n<parameter=text>hi</parameter>\n</function", {"text": "hi"}),
        ("<function=say><parameter=text>hi</parameter></function> and more", {"text": "hi"}),
        ("<function=say>\n<parameter=text>\nhi\n</parameter>\n</function>", {"text": "hi"}),
        ("<function=say>\n<parameter=text>hi\n<parameter=count>3\n", {"text": "hi", "count": 3}),
        ("<function=say>\n<parameter=text=hi</parameter>\n</function>", {"text": "hi"}),
        ("<tool_call>\n<function=say>\n</function>\n</tool_call>", {}),
        ('<function=say>\n{"text": "hi"}\n</function>', {"text": "hi"}),
        ("<function=say>\n<parameter=count> 3 </parameter>\n</function>", {"count": 3}),
        ("<function=say>\n<parameter=count>three</parameter>\n</function>", {"count": "three"}),
        ("<function=say>\n<parameter=ratio>2</parameter>\n</function>", {"ratio": 2}),
        ("<function=say>\n<parameter=ratio>NaN</parameter>\n</function>", {"ratio": "NaN"}),
        ("<function=say>\n<parameter=loud>True</parameter>\n</function>", {"loud": True}),
        ("<function=say>\n<parameter=range>None</parameter>\n</function>", {"range": None}),
        ("<function=say>\n<parameter=text>5</parameter>\n</function>", {"text": "5"}),
        ("<function=say>\n<parameter=any>5</parameter>\n</function>", {"any": "5"}),
        ("<function=say>\n<parameter=new>5</parameter>\n</function>", {"new": "5"}),
        (
            "<function=say>\n<parameter=text>use </function> here</parameter>\n</function>",
            {"text": "use </function> here"},
        ),
        (
            "<function=say>\n<parameter=text><parameter=a>1</parameter></parameter>\n</function>",
            {"text": "<parameter=a>1</parameter>"},
        ),
    ],
)
def test_a_call_is_parsed_in_every_spelling(text: str, values: dict[str, Any]) -> None:
    assert call(f"I do.\n{text}") == ("I do.", "say", values)


def test_only_the_first_of_several_calls_is_parsed() -> None:
    text = (
        format_call("finish", "{}")
        + "\nEXECUTION RESULT of [finish]:\nok\n"
        + format_call("say", "{}")
    )
    assert call(text) == ("", "finish", {})


@pytest.mark.parametrize("text", ["no call", "<function=", "<function>say", "a < b", ""])
def test_text_without_a_call_has_no_call(text: str) -> None:
    assert parse_call(text, TOOLS, truncated=False) is None


def test_an_unfinished_call_is_left_raw() -> None:
    tool_call = parse_call("<function=say>\n<parameter=text>rm -rf /tmp", TOOLS, truncated=True)
    assert tool_call is not None
    with pytest.raises(ValueError, match="Expecting value"):
        json.loads(tool_call.arguments)
    assert call(format_call("say", '{"text": "hi"}'), cut=True) == ("", "say", {"text": "hi"})


def test_arguments_that_are_no_object_are_formatted_unchanged() -> None:
    assert format_call("say", '{"half') == '<function=say>\n{"half\n</function>'


@calm
@given(words, arguments)
def test_the_visible_text_grows_and_never_shows_a_call(prose: str, values: dict[str, Any]) -> None:
    prose = prose.replace("<", "")
    text = prose + "\n\n" + format_call("say", json.dumps(values))
    visible_texts = [text_before_call(text[:end]) for end in range(len(text) + 1)]
    assert all(later.startswith(earlier) for earlier, later in itertools.pairwise(visible_texts))
    assert visible_texts[-1] == prose.strip()


def test_tools_are_described_with_their_parameters() -> None:
    description = describe_tools([{"name": "say", "description": "Say it.", "parameters": SCHEMA}])
    assert description.startswith(
        "---- say ----\nSay it.\n- text (string, required): What to say.\n"
    )
    assert "- range (array or integer or null" not in description
    assert "- range (array or null, optional)" in description
    assert "- any (any, optional)" in description
    assert '"title"' in description, "what a reference refers to is told"


def test_a_schema_that_refers_to_itself_ends() -> None:
    loop = {"anyOf": [{"$ref": "#/$defs/Loop"}, {"type": "integer"}]}
    schema = {"properties": {"x": {"$ref": "#/$defs/Loop"}}, "$defs": {"Loop": loop}}
    tool_call = parse_call("<function=f><parameter=x>3</parameter>", {"f": schema}, truncated=False)
    assert tool_call is not None
    assert json.loads(tool_call.arguments) == {"x": 3}
