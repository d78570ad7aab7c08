"""Annotations of a tool call by the model: its risk and its purpose."""

from typing import Any, NamedTuple

from perdure.agent.policies import RISK_LEVELS
from perdure.events.content import ToolDefinition
from perdure.events.risk import Risk

RISK_SCHEMA: dict[str, Any] = {
    "type": "string",
    "enum": ["LOW", "MEDIUM", "HIGH"],
    "description": "How much harm this call could do. LOW: it only looks, or changes what is "
    "easily put back, inside the workspace. MEDIUM: it changes or runs something inside the "
    "workspace that takes effort to put back. HIGH: it reaches beyond the workspace, spends or "
    "publishes something, touches secrets, or cannot be undone.",
}
SUMMARY_SCHEMA: dict[str, Any] = {
    "type": "string",
    "description": "What this call is for, in about ten words, for the person who may have to "
    "allow it.",
}


class Annotations(NamedTuple):
    risk: Risk
    summary: str | None


NO_ANNOTATIONS = Annotations("UNKNOWN", None)


def add_annotation_parameters(definition: ToolDefinition) -> ToolDefinition:
    """Add the parameters for annotations to a tool that does more than read."""
    if definition.annotations.readOnlyHint:
        return definition
    schemas = {"security_risk": RISK_SCHEMA, "summary": SUMMARY_SCHEMA}
    added = {name: schema for name, schema in schemas.items() if _is_free(definition, name)}
    parameters = definition.parameters
    extended = {
        **parameters,
        "properties": {**_properties(definition), **added},
        "required": [*(parameters.get("required") or ()), *(added.keys() & {"security_risk"})],
    }
    return definition.model_copy(update={"parameters": extended})


def split_annotations(
    definition: ToolDefinition, arguments: dict[str, Any]
) -> tuple[dict[str, Any], Annotations]:
    """Split the arguments into the tool's own and the annotations, requested or not.

    An unrecognized risk is unknown.
    """
    own = dict(arguments)
    risk = own.pop("security_risk", None) if _is_free(definition, "security_risk") else None
    summary = own.pop("summary", None) if _is_free(definition, "summary") else None
    level = risk.strip().upper() if isinstance(risk, str) else None
    known: Risk = next((known for known in RISK_LEVELS if known == level), "UNKNOWN")
    return own, Annotations(known, summary if isinstance(summary, str) else None)


def _is_free(definition: ToolDefinition, name: str) -> bool:
    """Check that `name` cannot be an argument of the tool itself."""
    others = definition.parameters.get("additionalProperties")
    return name not in _properties(definition) and not others


def _properties(definition: ToolDefinition) -> dict[str, Any]:
    return definition.parameters.get("properties") or {}
