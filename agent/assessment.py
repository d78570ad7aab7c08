"""How risky the actions of an answer are, by everyone who is asked."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from agent.spec import RISKS
from events.control import SecurityAnalysisEvent
from events.event import Event
from events.risk import Risk
from events.tools import ActionEvent

Analyze: TypeAlias = Callable[[ActionEvent], Risk]
"""Tells the risk of an action; pure."""


def by_model(action: ActionEvent) -> Risk:
    """What the model itself said of its call."""
    return action.security_risk


@dataclass(frozen=True)
class Assessment:
    """Who tells the risks of actions, each with a name, and the policy that asks for them.

    `ids` gives the id that an event of the answer will have, by its position among them.
    """

    policy: str
    analyzers: Sequence[tuple[str, Analyze]]
    ids: Callable[[int], str]


def assessed(
    events: Sequence[Event], assessment: Assessment, read_only: Collection[str], timestamp: str
) -> Iterator[SecurityAnalysisEvent]:
    """The risks of the actions that can be done, in one event, where there are any."""
    risks = {
        assessment.ids(position): _highest(event, assessment, read_only)
        for position, event in enumerate(events)
        if isinstance(event, ActionEvent) and event.action is not None
    }
    if risks:
        yield SecurityAnalysisEvent(
            timestamp=timestamp,
            analyzer="+".join(name for name, _ in assessment.analyzers),
            policy=assessment.policy,
            risks=risks,
        )


def _highest(action: ActionEvent, assessment: Assessment, read_only: Collection[str]) -> Risk:
    """The highest risk that anybody sees; what only reads is of low risk until somebody objects.

    A model is not asked about what only reads, so its silence means nothing there.
    """
    floor: Risk = "LOW" if action.tool_name in read_only else "UNKNOWN"
    told = (_told(analyze, action) for _, analyze in assessment.analyzers)
    return max((floor, *told), key=RISKS.index)


def _told(analyze: Analyze, action: ActionEvent) -> Risk:
    """What an analyzer says; one that breaks down has not cleared the action."""
    try:
        risk = analyze(action)
    except Exception:
        return "HIGH"
    return risk if risk in RISKS else "HIGH"
