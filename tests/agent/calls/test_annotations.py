"""Models annotate calls with a risk; tools never see the annotations."""

from typing import Any

import pytest

from perdure.agent.calls.risk import (
    Annotations,
    add_annotation_parameters,
    split_annotations,
)
from perdure.events.content import ToolAnnotations, ToolDefinition


def definition(read_only: bool = False, **schema: Any) -> ToolDefinition:
    parameters = {
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
        **schema,
    }
    hints = ToolAnnotations(readOnlyHint=read_only)
    return ToolDefinition(name="t", description="d", parameters=parameters, annotations=hints)


def test_the_risk_parameter_is_required_and_the_summary_optional() -> None:
    tool = add_annotation_parameters(definition(additionalProperties=False))
    assert list(tool.parameters["properties"]) == ["path", "security_risk", "summary"]
    assert tool.parameters["properties"]["security_risk"]["enum"] == ["LOW", "MEDIUM", "HIGH"]
    assert tool.parameters["required"] == ["path", "security_risk"]
    assert tool.parameters["additionalProperties"] is False


def test_the_tool_itself_stays_as_it_is() -> None:
    tool = definition()
    before = tool.model_dump_json()
    add_annotation_parameters(tool)
    assert tool.model_dump_json() == before


def test_a_tool_without_arguments_can_be_annotated() -> None:
    bare = ToolDefinition(name="t", description="d", parameters={"type": "object"})
    assert add_annotation_parameters(bare).parameters["required"] == ["security_risk"]


def test_a_read_only_tool_has_no_risk_parameter() -> None:
    assert add_annotation_parameters(definition(read_only=True)) == definition(read_only=True)


def test_a_tools_own_argument_is_not_an_annotation() -> None:
    own = definition(properties={"security_risk": {"type": "integer"}, "summary": {}})
    assert add_annotation_parameters(own) == own
    arguments = {"security_risk": 3, "summary": "s"}
    assert split_annotations(own, arguments) == (arguments, Annotations("UNKNOWN", None))


def test_a_tool_with_additional_properties_keeps_all_arguments() -> None:
    free = definition(additionalProperties=True)
    assert add_annotation_parameters(free) == free
    assert split_annotations(free, {"security_risk": "HIGH"})[0] == {"security_risk": "HIGH"}


@pytest.mark.parametrize(
    ("argument", "risk"),
    [("LOW", "LOW"), (" high\n", "HIGH"), ("Medium", "MEDIUM"), ("UNKNOWN", "UNKNOWN")]
    + [(wrong, "UNKNOWN") for wrong in ("", "none", 3, None, ["LOW"], {"a": 1})],
)
def test_an_unrecognized_risk_is_unknown(argument: Any, risk: str) -> None:
    arguments = {"path": "a", "security_risk": argument}
    assert split_annotations(definition(), arguments) == ({"path": "a"}, Annotations(risk, None))  # type: ignore[arg-type]


@pytest.mark.parametrize("read_only", [True, False])
def test_unrequested_annotations_are_split_off_too(read_only: bool) -> None:
    arguments = {"path": "a", "security_risk": "LOW", "summary": "Look."}
    assert split_annotations(definition(read_only), arguments) == (
        {"path": "a"},
        Annotations("LOW", "Look."),
    )
    assert set(arguments) == {"path", "security_risk", "summary"}


def test_a_summary_that_is_no_string_is_dropped() -> None:
    assert split_annotations(definition(), {"summary": 3}) == ({}, Annotations("UNKNOWN", None))
