"""The risk of an action: annotated by the model with its call, and rated by all analyzers."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from perdure.agent.policies import RISK_LEVELS
from perdure.events.content import ToolDefinition
from perdure.events.control import SecurityAnalysisEvent
from perdure.events.event import Event
from perdure.events.risk import Risk
from perdure.events.tools import ActionEvent

Analyze: TypeAlias = Callable[[ActionEvent], Risk]
"""Rates the risk of an action; pure."""

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


def model_risk(action: ActionEvent) -> Risk:
    """Return the model's own rating of its call."""
    return action.security_risk


@dataclass(frozen=True)
class RiskAssessor:
    """The analyzers by name, and the policy that asks for them.

    `event_id` returns the id that an event of the response will have, by its position.
    """

    policy: str
    analyzers: Sequence[tuple[str, Analyze]]
    event_id: Callable[[int], str]


def assess_actions(
    events: Sequence[Event], assessor: RiskAssessor, read_only: Collection[str], timestamp: str
) -> Iterator[SecurityAnalysisEvent]:
    """Yield one event with the risks of the valid actions, if there are any."""
    risks = {
        assessor.event_id(position): _highest_risk(event, assessor, read_only)
        for position, event in enumerate(events)
        if isinstance(event, ActionEvent) and event.action is not None
    }
    if risks:
        yield SecurityAnalysisEvent(
            timestamp=timestamp,
            analyzer="+".join(name for name, _ in assessor.analyzers),
            policy=assessor.policy,
            risks=risks,
        )


def _highest_risk(action: ActionEvent, assessor: RiskAssessor, read_only: Collection[str]) -> Risk:
    """Return the highest rating; a tool that only reads has low risk unless an analyzer objects.

    A model is not asked about tools that only read: an unknown risk means nothing there.
    """
    floor: Risk = "LOW" if action.tool_name in read_only else "UNKNOWN"
    risks = (_run_analyzer(analyze, action) for _, analyze in assessor.analyzers)
    return max((floor, *risks), key=RISK_LEVELS.index)


def _run_analyzer(analyze: Analyze, action: ActionEvent) -> Risk:
    """Return an analyzer's rating; one that fails has not cleared the action."""
    try:
        risk = analyze(action)
    except Exception:
        return "HIGH"
    return risk if risk in RISK_LEVELS else "HIGH"
