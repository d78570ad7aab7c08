"""Models are asked how risky a call is, and what they say never reaches the tool."""

from typing import Any

import pytest

from agent.annotations import Annotations, asking, taken
from events.content import ToolAnnotations, ToolDefinition


def definition(read_only: bool = False, **schema: Any) -> ToolDefinition:
    parameters = {
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
        **schema,
    }
    hints = ToolAnnotations(readOnlyHint=read_only)
    return ToolDefinition(name="t", description="d", parameters=parameters, annotations=hints)


def test_a_risk_is_required_and_a_summary_welcome() -> None:
    asked = asking(definition(additionalProperties=False))
    assert list(asked.parameters["properties"]) == ["path", "security_risk", "summary"]
    assert asked.parameters["properties"]["security_risk"]["enum"] == ["LOW", "MEDIUM", "HIGH"]
    assert asked.parameters["required"] == ["path", "security_risk"]
    assert asked.parameters["additionalProperties"] is False


def test_the_tool_itself_stays_as_it_is() -> None:
    tool = definition()
    before = tool.model_dump_json()
    asking(tool)
    assert tool.model_dump_json() == before


def test_a_tool_without_arguments_can_be_asked_for() -> None:
    bare = ToolDefinition(name="t", description="d", parameters={"type": "object"})
    assert asking(bare).parameters["required"] == ["security_risk"]


def test_of_what_only_reads_no_risk_is_asked() -> None:
    assert asking(definition(read_only=True)) == definition(read_only=True)


def test_an_argument_of_the_tools_own_is_left_alone() -> None:
    own = definition(properties={"security_risk": {"type": "integer"}, "summary": {}})
    assert asking(own) == own
    arguments = {"security_risk": 3, "summary": "s"}
    assert taken(own, arguments) == (arguments, Annotations("UNKNOWN", None))


def test_so_is_everything_of_a_tool_that_takes_anything() -> None:
    free = definition(additionalProperties=True)
    assert asking(free) == free
    assert taken(free, {"security_risk": "HIGH"})[0] == {"security_risk": "HIGH"}


@pytest.mark.parametrize(
    ("said", "risk"),
    [("LOW", "LOW"), (" high\n", "HIGH"), ("Medium", "MEDIUM"), ("UNKNOWN", "UNKNOWN")]
    + [(wrong, "UNKNOWN") for wrong in ("", "none", 3, None, ["LOW"], {"a": 1})],
)
def test_a_risk_that_is_none_of_the_three_is_unknown(said: Any, risk: str) -> None:
    arguments = {"path": "a", "security_risk": said}
    assert taken(definition(), arguments) == ({"path": "a"}, Annotations(risk, None))  # type: ignore[arg-type]


@pytest.mark.parametrize("read_only", [True, False])
def test_what_was_said_without_being_asked_for_is_taken_off_too(read_only: bool) -> None:
    arguments = {"path": "a", "security_risk": "LOW", "summary": "Look."}
    assert taken(definition(read_only), arguments) == ({"path": "a"}, Annotations("LOW", "Look."))
    assert set(arguments) == {"path", "security_risk", "summary"}


def test_a_summary_that_is_no_text_is_dropped() -> None:
    assert taken(definition(), {"summary": 3}) == ({}, Annotations("UNKNOWN", None))
