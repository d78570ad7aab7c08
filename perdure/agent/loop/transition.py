"""The change of a state by a trigger."""

from typing import Any

from perdure.agent.loop.state import State
from perdure.agent.loop.status import Trigger, next_status


def move_status(state: State, trigger: Trigger, reason: str | None = None) -> dict[str, Any]:
    """Move the status; an unchanged status keeps its reason, unless the trigger is a failure."""
    status = next_status(state.status, trigger)
    if status == state.status and trigger not in ("failure", "stuck"):
        return {}
    return {"status": status, "reason": reason}
