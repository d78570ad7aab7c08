"""The fields of an agent that can change while its conversation goes on."""

from typing import Any

from pydantic import ValidationError

from perdure.agent.condensers import expand_condenser
from perdure.agent.fields import find_unknown_field
from perdure.agent.loop.inbox import SpecChange
from perdure.agent.spec import Agent
from perdure.agent.surroundings import OF_REPOSITORY, split_described_secrets
from perdure.events.validation_errors import describe_errors, quote

CHANGEABLE_FIELDS = (
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
    "secret_descriptions",
    "repository",
    "branch",
    "repository_token",
)
"""Fields that can change. The agent was told its tools, prompt and workspace once; a change of its
secrets is told anew, and another repository is cloned beside the first.
"""

MAX_CHANGE_BYTES = 16 * 1024
"""Bytes of one change: it becomes part of the state."""


def check_changes(spec: Agent, changes: dict[str, Any]) -> SpecChange:
    """Check the changes against the agent in force, and return them as they will be recorded.

    Named fields are replaced whole, but of `limits`, `confirmation` and `stuck` only what is named
    changes, and of `model` too where no other `name` is given; a plain text as `model` is its name.
    Raises ValueError with a sentence.
    """
    changes = split_described_secrets(changes)
    if unknown := sorted(changes.keys() - set(CHANGEABLE_FIELDS)):
        names = ", ".join(CHANGEABLE_FIELDS)
        raise ValueError(f"{quote(unknown[0])} cannot be changed: use {names}.")
    if problem := find_unknown_field(changes):
        raise ValueError(problem.sentence)
    if changes.get("repository", spec.repository) != spec.repository:
        changes = {**dict.fromkeys(OF_REPOSITORY), **changes}
    current = spec.model_dump(mode="json")
    merged = {name: _merge_field(name, current.get(name), value) for name, value in changes.items()}
    try:
        agent = Agent.model_validate({**current, **merged})
    except ValidationError as error:
        raise ValueError(f"The change does not fit ({describe_errors(error)}).") from error
    checked = agent.model_dump(mode="json", exclude_none=True)
    empty: dict[str, Any] = {"secret_descriptions": {}}  # a dump leaves out what is empty
    change = SpecChange(changes={name: checked.get(name, empty.get(name)) for name in merged})
    if (size := len(change.model_dump_json().encode())) > MAX_CHANGE_BYTES:
        raise ValueError(f"The change has {size:,} bytes, and {MAX_CHANGE_BYTES:,} is the most.")
    return change


def _merge_field(name: str, current: Any, value: Any) -> Any:
    if name == "model" and isinstance(value, str):
        return {"name": value}
    if name == "condenser":
        return expand_condenser(value)
    merges = name in ("limits", "confirmation", "stuck") or (
        name == "model" and isinstance(value, dict) and "name" not in value
    )
    return {**current, **value} if merges and isinstance(value, dict) else value
