"""The agent that the options of a command describe."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from perdure.agent.policies import Confirmation, Limits
from perdure.agent.spec import Agent, ModelSpec, Skills
from perdure.cli.mcp_file import read_servers
from perdure.cli.options import CONDENSER_KINDS, AgentOptions
from perdure.cli.rendering.durations import parse_moment
from perdure.errors import Invalid
from perdure.references import find_entry_points, is_reference
from perdure.tools.catalog import BUILT_IN_TOOLS, is_known_tool


def build_agent(options: AgentOptions, model: ModelSpec) -> Agent:
    """Build the agent that asks `model`. Raises Invalid."""
    values = {
        "workspace": str(options.workspace.absolute()) if options.workspace else None,
        "tools": tuple(options.tools.split(",")) if options.tools is not None else None,
        "confirmation": parse_confirmation(options.confirm)
        if options.confirm is not None
        else None,
        "condenser": _parse_condenser(options.condenser) if options.condenser else None,
        "mcp": read_servers(options.mcp) if options.mcp else None,
        "skills": Skills(folders=_resolve_skill_folders(options.skills))
        if options.skills
        else None,
        "tags": tuple(options.tags) if options.tags else None,
        "secrets": _check_secret_names(options.secrets) if options.secrets else None,
    }
    changes = {name: value for name, value in values.items() if value is not None}
    return Agent.model_validate({"model": model, "limits": _limits(options), **changes})


def check_agent_options(options: AgentOptions) -> None:
    """Validate all options before anything is started. Raises Invalid."""
    for name in (options.tools or "terminal").split(","):
        if not is_known_tool(name):
            raise Invalid(
                f"There is no tool {name!r}: there are {', '.join(BUILT_IN_TOOLS)}.",
                "Name one of your own as module:attribute.",
            )
    build_agent(options, ModelSpec(name="any"))


def _parse_condenser(text: str) -> dict[str, str]:
    """Raises Invalid."""
    if text in CONDENSER_KINDS:
        return {"kind": text}
    if is_reference(text) or text in find_entry_points("perdure.condensers"):
        return {"kind": "custom", "function": text}
    raise Invalid(f"There is no condenser {text!r}: use {', '.join(CONDENSER_KINDS)}.")


def _limits(options: AgentOptions) -> Limits:
    values: dict[str, Any] = {
        "max_iterations": options.max_iterations,
        "max_budget": options.max_budget,
        "deadline": parse_moment(options.deadline, datetime.now(UTC)) if options.deadline else None,
    }
    return Limits(**{name: value for name, value in values.items() if value is not None})


def parse_confirmation(text: str) -> Confirmation:
    """Parse `never`, `always`, `risky` or `risky:MEDIUM` (the lowest risk that needs approval).

    Raises Invalid.
    """
    policy, _, threshold = text.partition(":")
    fields = {"policy": policy, **({"threshold": threshold.upper()} if threshold else {})}
    is_known = policy == "risky" or (policy in ("never", "always") and not threshold)
    if not is_known or threshold.upper() not in ("", "LOW", "MEDIUM", "HIGH"):
        raise Invalid(
            f"There is no policy {text!r}: use never, always, risky, or risky:LOW, risky:MEDIUM "
            "or risky:HIGH."
        )
    return Confirmation.model_validate(fields)


def _check_secret_names(secrets: list[str]) -> tuple[str, ...]:
    """Raises Invalid for what is not a variable's name, such as a secret itself."""
    for name in secrets:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,127}", name):
            raise Invalid(
                f"{name!r} is no name of a secret: name one of the worker's, such as API_TOKEN.",
                "Its value stays with the worker, in PERDURE_SECRETS or PERDURE_SECRET_API_TOKEN.",
            )
    return tuple(secrets)


def _resolve_skill_folders(folders: list[Path]) -> tuple[str, ...]:
    """Make the paths absolute: the worker has another working directory. Raises Invalid."""
    for folder in folders:
        if not folder.is_dir():
            raise Invalid(f"{folder} is no folder of skills.")
    return tuple(str(folder.absolute()) for folder in folders)
