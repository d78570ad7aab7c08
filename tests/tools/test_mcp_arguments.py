"""MCP arguments are validated against the server's schema, and coerced where unambiguous."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.events.actions import MCPToolAction
from perdure.events.content import ToolDefinition
from perdure.tools.mcp.definitions import fit_arguments
from perdure.tools.mcp.servers import McpSessions

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "user": {"type": "string"},
        "bags": {"type": "integer"},
        "key": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "note": {"type": "string"},
        "flights": {
            "type": "array",
            "items": {"type": "object", "properties": {"price": {"type": "number"}}},
        },
    },
    "required": ["user"],
    "additionalProperties": False,
}
VALUES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()


@given(
    st.dictionaries(
        st.sampled_from(["user", "bags", "key", "note", "flights", "other"]),
        VALUES | st.lists(VALUES, max_size=3),
    )
)
@settings(max_examples=100, deadline=None)
def test_arguments_are_accepted_or_reported_in_a_sentence(arguments: dict[str, Any]) -> None:
    before = json.dumps(arguments)
    taken, message = None, ""
    try:
        taken = fit_arguments(SCHEMA, arguments)
    except ValueError as error:
        message = str(error)
    assert taken is None or fit_arguments(SCHEMA, taken) == taken
    assert taken is not None or (message.endswith(".") and len(message) < 5000)
    assert json.dumps(arguments) == before


def test_text_is_read_as_what_was_due() -> None:
    sent = {
        "user": "7",
        "bags": "2",
        "key": "null",
        "flights": '[{"price": 1.5}]',
    }
    meant = {"user": "7", "bags": 2, "key": None, "flights": [{"price": 1.5}]}
    assert fit_arguments(SCHEMA, sent) == meant
    assert fit_arguments(SCHEMA, {"user": "x", "flights": [{"price": "3"}]})["flights"] == [
        {"price": 3}
    ]


def test_a_null_for_an_optional_property_is_dropped() -> None:
    assert fit_arguments(SCHEMA, {"user": "x", "note": None, "key": None}) == {
        "user": "x",
        "key": None,
    }


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "'user' is a required property."),
        ({"user": None}, "`user`: None is not of type 'string'."),
        ({"user": "x", "bags": "many"}, "`bags`: 'many' is not of type 'integer'."),
        ({"user": "x", "bags": "NaN"}, "`bags`: 'NaN' is not of type 'integer'."),
        ({"user": "x", "flights": [{"price": []}]}, "`flights.0.price`: [] is not of type"),
        ({"user": "x", "seat": 1}, "Additional properties are not allowed ('seat' was"),
        ({"user": "x", "bags": "y" * 9999}, "`bags`: 'yyyy"),
    ],
)
def test_an_error_names_the_argument(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)) as raised:
        fit_arguments(SCHEMA, arguments)
    assert str(raised.value).startswith(sentence)
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "no such type"},
        {"properties": {"a": {"$ref": "http://127.0.0.1:1/schema.json"}}},
        {"properties": {"a": {"$ref": "#/missing"}}},
        {"$ref": "#"},
        {"properties": 3},
        {},
    ],
)
def test_an_unusable_schema_is_left_to_the_server(schema: dict[str, Any]) -> None:
    assert fit_arguments(schema, {"a": "1"}) == {"a": "1"}


@pytest.mark.timeout(10)
def test_a_pattern_that_never_ends_is_not_begun() -> None:
    endless = "^(a+)+$"
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string", "pattern": endless}},
        "patternProperties": {endless: {"type": "string"}},
        "additionalProperties": False,
    }
    arguments = {"a": "a" * 60 + "!", "a" * 60 + "!": "x"}
    assert fit_arguments(schema, arguments) == arguments


def test_a_definition_is_enough_to_read_a_call() -> None:
    definition = ToolDefinition(name="s__t", description="", parameters=SCHEMA)
    tool = McpSessions().make_tool("one", (), Path("/nowhere"), definition)
    assert tool.parse({"user": "x", "bags": "2"}) == MCPToolAction(data={"user": "x", "bags": 2})
