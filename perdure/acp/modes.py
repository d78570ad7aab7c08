"""The modes of a session, which are the policies of what waits for a person."""

from typing import Any

from perdure.agent.policies import Confirmation
from perdure.errors import Invalid
from perdure.wording import shorten

MODES = {
    "ask": ("always", "Ask", "Every action waits for your permission."),
    "risky": ("risky", "Ask if risky", "Actions of high or unknown risk wait for it."),
    "auto": ("never", "Auto", "No action waits."),
}
"""The policy of a mode, its name, and what it means."""


def find_mode(confirmation: Confirmation | None) -> str:
    """Return the mode of a policy."""
    policy = (confirmation or Confirmation()).policy
    return next(mode for mode, (name, *_) in MODES.items() if name == policy)


def read_mode(mode_id: str, current: Confirmation | None) -> Confirmation:
    """Return the policy of a mode, with the thresholds that there are. Raises Invalid."""
    if mode_id not in MODES:
        raise Invalid(f"There is no mode {shorten(mode_id)!r}.", f"Use {', '.join(MODES)}.")
    return (current or Confirmation()).model_copy(update={"policy": MODES[mode_id][0]})


def list_modes(current: str) -> dict[str, Any]:
    """Return the modes that there are, and the one in force."""
    modes = [
        {"id": mode, "name": name, "description": description}
        for mode, (_, name, description) in MODES.items()
    ]
    return {"currentModeId": current, "availableModes": modes}
