"""The effects of some tools' results beside their answers: a turn ends, the view is condensed."""

from typing import Any

from perdure.agent.loop.state import CONDENSE_TOOL, Ending, State
from perdure.events.summary import EventSummary


def find_ending(event: EventSummary) -> Ending | None:
    """Return how a result ends the turn, once all calls of its response are done."""
    if event.kind != "ObservationEvent" or event.is_error:
        return None
    if event.key == "rejected":
        return "reject"
    return "finish" if event.tool_name == "finish" else None


def request_condensation(state: State, event: EventSummary) -> dict[str, Any]:
    """Have the view condensed before the next answer, if the agent asked for that."""
    is_result = event.kind == "ObservationEvent" and not event.is_error
    if not is_result or event.tool_name != CONDENSE_TOOL:
        return {}
    return {"condense_reason": state.condense_reason or "user"}
