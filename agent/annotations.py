"""What a model says of a call besides its arguments: how risky it is, and what it is for."""

from typing import Any, NamedTuple

from agent.spec import RISKS
from events.content import ToolDefinition
from events.risk import Risk

RISK: dict[str, Any] = {
    "type": "string",
    "enum": ["LOW", "MEDIUM", "HIGH"],
    "description": "How much harm this call could do. LOW: it only looks, or changes what is "
    "easily put back, inside the workspace. MEDIUM: it changes or runs something inside the "
    "workspace that takes effort to put back. HIGH: it reaches beyond the workspace, spends or "
    "publishes something, touches secrets, or cannot be undone.",
}
SUMMARY: dict[str, Any] = {
    "type": "string",
    "description": "What this call is for, in about ten words, for the person who may have to "
    "allow it.",
}


class Annotations(NamedTuple):
    risk: Risk
    summary: str | None


NOTHING_SAID = Annotations("UNKNOWN", None)


def asking(definition: ToolDefinition) -> ToolDefinition:
    """The tool as it is offered where a policy asks for risks; what only reads is not asked for."""
    if definition.annotations.readOnlyHint:
        return definition
    added = {
        name: schema
        for name, schema in (("security_risk", RISK), ("summary", SUMMARY))
        if _is_free(definition, name)
    }
    parameters = definition.parameters
    asked = {
        **parameters,
        "properties": {**_properties(definition), **added},
        "required": [*(parameters.get("required") or ()), *(added.keys() & {"security_risk"})],
    }
    return definition.model_copy(update={"parameters": asked})


def taken(
    definition: ToolDefinition, arguments: dict[str, Any]
) -> tuple[dict[str, Any], Annotations]:
    """The tool's own arguments, and the annotations that came among them, asked for or not.

    A risk that is none of the three is unknown.
    """
    own = dict(arguments)
    risk = own.pop("security_risk", None) if _is_free(definition, "security_risk") else None
    summary = own.pop("summary", None) if _is_free(definition, "summary") else None
    return own, Annotations(_risk(risk), summary if isinstance(summary, str) else None)


def _is_free(definition: ToolDefinition, name: str) -> bool:
    """Whether `name` cannot be an argument of the tool itself."""
    others = definition.parameters.get("additionalProperties")
    return name not in _properties(definition) and not others


def _properties(definition: ToolDefinition) -> dict[str, Any]:
    return definition.parameters.get("properties") or {}


def _risk(said: Any) -> Risk:
    name = said.strip().upper() if isinstance(said, str) else None
    return next((risk for risk in RISKS if risk == name), "UNKNOWN")
