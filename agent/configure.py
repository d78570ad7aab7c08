"""What of a spec can be changed while the conversation goes on."""

from typing import Any

from pydantic import ValidationError

from agent.inbox import Configured
from agent.misfit import misfit, quoted
from agent.spec import Spec

FIELDS = (
    "model",
    "fallbacks",
    "limits",
    "condenser",
    "stuck",
    "confirmation",
    "analyzers",
    "parallel",
    "tags",
    "secrets",
)
"""Not the tools, the prompt and the workspace: what the agent was told of them stands. Of its
secrets it is told anew."""

MOST = 16 * 1024
"""Bytes of one change: it becomes a part of the state."""


def changed(spec: Spec, changes: dict[str, Any]) -> Configured:
    """The changes as they will be recorded: whole fields, checked against the spec in force.

    Of `limits`, `confirmation` and `stuck` only what is named changes, and of `model` too where no
    other `name` is given; a bare text as `model` is its name. Raises ValueError with a sentence.
    """
    if unknown := sorted(changes.keys() - set(FIELDS)):
        raise ValueError(f"{quoted(unknown[0])} cannot be changed: use {', '.join(FIELDS)}.")
    now = spec.model_dump(mode="json")
    wanted = {name: _wanted(name, now[name], value) for name, value in changes.items()}
    try:
        then = Spec.model_validate({**now, **wanted}).model_dump(mode="json", exclude_none=True)
    except ValidationError as error:
        raise ValueError(f"The change does not fit ({misfit(error)}).") from error
    for name, value in wanted.items():
        if strays := _strays(value, Spec.model_validate({**now, **wanted}), name):
            raise ValueError(f"`{name}` has no {quoted(strays)}.")
    configured = Configured(changes={name: then.get(name) for name in wanted})
    if (size := len(configured.model_dump_json().encode())) > MOST:
        raise ValueError(f"The change has {size:,} bytes, and {MOST:,} is the most.")
    return configured


def _wanted(name: str, now: Any, value: Any) -> Any:
    if name == "model" and isinstance(value, str):
        return {"name": value}
    merges = name in ("limits", "confirmation", "stuck") or (
        name == "model" and isinstance(value, dict) and "name" not in value
    )
    return {**now, **value} if merges and isinstance(value, dict) else value


def _strays(value: Any, spec: Spec, name: str) -> str | None:
    """A field that the spec would pass over in silence: somebody meant something by it."""
    if not isinstance(value, dict):
        return None
    known = type(getattr(spec, name)).model_fields
    return next((field for field in value if field not in known), None)
