"""The agent that the options of a command describe, with an agent file and the settings."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from perdure.agent.code import BUILT_IN_ANALYZERS, custom_analyzers
from perdure.agent.fields import Fields, complete_condenser, merge_fields
from perdure.agent.policies import Confirmation
from perdure.agent.spec import Agent
from perdure.agent.view.condense.thresholds import custom_condensers
from perdure.cli.agent_file import check_fields, read_agent_file, resolve_paths
from perdure.cli.arguments import parse_assignments
from perdure.cli.mcp_file import read_servers
from perdure.cli.moments import parse_moment
from perdure.cli.options import CONDENSER_KINDS, AgentFieldOptions, AgentOptions
from perdure.cli.workspaces import check_workspace
from perdure.errors import Invalid
from perdure.events.validation_errors import describe_errors
from perdure.references import find_entry_points, is_reference
from perdure.settings.settings import SETTINGS_FILES, Settings
from perdure.tools.catalog import BUILT_IN_TOOLS, is_known_tool

load_servers = cache(read_servers)
"""What `read_servers` notes of a file is noted once."""


def build_agent(options: AgentOptions, settings: Settings, **fields: Any) -> Agent:
    """Build the agent of the settings, the agent file, `-c` and the options.

    Each of them is stronger than those before, and `fields` than all. Raises Invalid.
    """
    check_fields(settings.agent, f"[agent] in {SETTINGS_FILES}")
    named = {"model": settings.model} if settings.model else {}
    layers = (settings.agent, named, *_option_layers(options), fields)
    merged = merge_fields(map(resolve_paths, layers))
    model = merged.get("model")
    if not (isinstance(model, dict) and model.get("name")):
        raise Invalid(
            "No model is set.",
            "Give --model NAME or set PERDURE_MODEL to one of litellm's names, such as "
            "anthropic/claude-sonnet-4-5, with its key in the environment of the worker; or give "
            "--script FILE for a scripted one.",
        )
    if options.workspace is not None:
        check_workspace(options.workspace)
    return _validate(merged)


def apply_agent_options(
    options: AgentFieldOptions, agent: Agent, model: str | None = None
) -> Agent:
    """Return the agent with what the agent file, `-c` and the options change.

    `model` is an option as well, for commands that take several. Raises Invalid.
    """
    layers = [resolve_paths(layer) for layer in _option_layers(options, model)]
    if not any(layers):
        return agent
    return _validate(merge_fields([agent.model_dump(mode="json", exclude_unset=True), *layers]))


def _validate(fields: Fields) -> Agent:
    try:
        agent = Agent.model_validate(complete_condenser(fields))
    except ValidationError as error:
        raise Invalid(f"The agent is invalid: {describe_errors(error)}.") from error
    check_code_names(agent)
    return agent


def check_code_names(agent: Agent) -> None:
    """Check the names of tools, condensers and analyzers; the worker loads them. Raises Invalid."""
    for name in agent.tools:
        if not is_known_tool(name):
            raise _unknown("tool", name, BUILT_IN_TOOLS)
    for condenser in custom_condensers(agent.condenser):
        _check_condenser(condenser.function)
    for name in custom_analyzers(agent):
        if not is_reference(name):
            raise _unknown("analyzer", name, BUILT_IN_ANALYZERS)


def _check_condenser(name: str) -> None:
    if not (is_reference(name) or name in find_entry_points("perdure.condensers")):
        raise _unknown("condenser", name, CONDENSER_KINDS)


def _unknown(kind: str, name: str, known: Iterable[str]) -> Invalid:
    message = f"There is no {kind} {name!r}: there are {', '.join(known)}."
    return Invalid(message, "Name one of your own as module:attribute.")


def _option_layers(
    options: AgentFieldOptions, model: str | None = None
) -> tuple[Fields, Fields, Fields]:
    """Return the fields of the agent file, of `-c`, and of the other options. Raises Invalid."""
    file = read_agent_file(options.agent_file) if options.agent_file is not None else {}
    config = parse_assignments(options.config or [])
    check_fields(config, "-c")
    own = merge_fields([_option_fields(options), {"model": {"name": model}} if model else {}])
    if (name := own.get("model", {}).get("name")) and "model" in config:
        # What `-c` says of a model, it says of the one that is named beside it.
        config = merge_fields([{"model": {"name": name}}, config, {"model": {"name": name}}])
    return file, config, own


def _option_fields(options: AgentFieldOptions) -> Fields:
    """Return the fields that the options set one by one. Raises Invalid."""
    fields: dict[str, Any] = {
        "model": _model_fields(options) or None,
        "limits": _limit_fields(options) or None,
        "skills": options.skills and {"folders": _check_folders(options.skills)},
        "fallbacks": options.fallbacks,
        "system_prompt": _read_text(options.system_prompt),
        "instructions": _read_text(options.instructions),
        "condenser": options.condenser and _parse_condenser(options.condenser),
        "tools": options.tools and options.tools.split(","),
        "mcp": options.mcp and [server.model_dump() for server in load_servers(options.mcp)],
        "workspace": options.workspace and str(options.workspace),
        "network": options.network,
        "confirmation": options.confirm
        and parse_confirmation(options.confirm).model_dump(exclude_unset=True),
        "secrets": options.secrets and _check_secret_names(options.secrets),
        "tags": options.tags,
    }
    return _without_nones(fields)


def _model_fields(options: AgentFieldOptions) -> Fields:
    """Return the fields of the model; with a script the name is that of one of its scripts."""
    is_named = isinstance(options, AgentOptions) and not options.script
    fields = {
        "name": getattr(options, "model", None) if is_named else None,
        "api_base": options.api_base,
        "temperature": options.temperature,
        "reasoning_effort": options.reasoning_effort,
        "max_output_tokens": options.max_output_tokens,
    }
    return _without_nones(fields)


def _limit_fields(options: AgentFieldOptions) -> Fields:
    deadline = options.deadline and parse_moment(options.deadline, datetime.now(UTC))
    limits = {"max_iterations": options.max_iterations, "max_budget": options.max_budget}
    return _without_nones({**limits, "deadline": deadline or None})


def _without_nones(fields: Fields) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _read_text(text: str | None) -> str | None:
    """Return the text, or that of the file whose name stands behind an `@`. Raises Invalid."""
    if text is None or not text.startswith("@"):
        return text
    try:
        return Path(text[1:]).expanduser().read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no text in UTF-8"
        raise Invalid(f"{text[1:]} cannot be read: {reason}.") from error


def _parse_condenser(text: str) -> dict[str, str]:
    """Raises Invalid."""
    if text in CONDENSER_KINDS:
        return {"kind": text}
    _check_condenser(text)
    return {"kind": "custom", "function": text}


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


def _check_secret_names(secrets: list[str]) -> list[str]:
    """Raises Invalid for what is not a variable's name, such as a secret itself."""
    for name in secrets:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,127}", name):
            raise Invalid(
                f"{name!r} is no name of a secret: name one of the worker's, such as API_TOKEN.",
                "Its value stays with the worker, in PERDURE_SECRETS or PERDURE_SECRET_API_TOKEN.",
            )
    return secrets


def _check_folders(folders: list[Path]) -> list[str]:
    """Raises Invalid."""
    for folder in folders:
        if not folder.is_dir():
            raise Invalid(f"{folder} is no folder of skills.")
    return list(map(str, folders))
