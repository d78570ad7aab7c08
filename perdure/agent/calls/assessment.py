"""The risks of a response's actions, by all analyzers."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from perdure.agent.policies import RISK_LEVELS
from perdure.events.control import SecurityAnalysisEvent
from perdure.events.event import Event
from perdure.events.risk import Risk
from perdure.events.tools import ActionEvent

Analyze: TypeAlias = Callable[[ActionEvent], Risk]
"""Rates the risk of an action; pure."""


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
