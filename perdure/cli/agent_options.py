"""The agent that the options of a command describe, with an agent file and the settings."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from perdure.agent.code import BUILT_IN_ANALYZERS, custom_analyzers
from perdure.agent.fields import BadAgent, find_unknown_field, parse_agent
from perdure.agent.layers import Fields, Layer, merge_layers
from perdure.agent.policies import Confirmation
from perdure.agent.resolve import NoModel, resolve_agent
from perdure.agent.spec import Agent
from perdure.agent.surroundings import OF_REPOSITORY
from perdure.agent.view.condense.thresholds import custom_condensers
from perdure.cli.arguments import parse_assignments
from perdure.cli.declarations.agent_fields import CONDENSER_KINDS, AgentFieldOptions, AgentOptions
from perdure.cli.mcp_file import read_servers
from perdure.cli.moments import parse_moment
from perdure.cli.workspaces import check_workspace
from perdure.client.agents.files import read_agent_fields
from perdure.client.agents.paths import resolve_paths
from perdure.client.agents.sources import AgentSources
from perdure.errors import Invalid
from perdure.references import find_entry_points, is_reference
from perdure.storage.keys import is_conversation_id
from perdure.tools.catalog import BUILT_IN_TOOLS, is_known_tool

load_servers = cache(read_servers)
"""What `read_servers` notes of a file is noted once."""


MODEL_HINT = (
    "Give --model NAME or set PERDURE_MODEL to one of litellm's names, such as "
    "anthropic/claude-sonnet-4-5, with its key in the environment of the worker; or give --script "
    "FILE for a scripted one."
)


async def build_agent(options: AgentOptions, sources: AgentSources, **fields: Any) -> Agent:
    """Build the agent of the options, and of what stands behind them: see `resolve_agent`.

    Of a start's arguments the agent file is the weakest, then come `-c`, the other options, and
    `fields`. Raises Invalid, Altered, StoreUnavailable.
    """
    arguments = [*option_layers(options), Layer("options", resolve_paths(fields))]
    if options.workspace is not None:
        check_workspace(options.workspace)
    offer = await sources.load_offer(options.agent, arguments)
    try:
        agent = resolve_agent(options.agent, arguments, offer).agent
    except NoModel as error:
        raise Invalid(str(error), MODEL_HINT) from error
    check_code_names(agent)
    return agent


def apply_agent_options(
    options: AgentFieldOptions, agent: Agent, model: str | None = None, named: Agent | None = None
) -> Agent:
    """Return the agent with what the agent file, `-c` and the options change.

    `model` is an option as well, for commands that take several. A `named` agent is weaker than
    what the agent itself says. Raises Invalid.
    """
    own = [layer for layer in option_layers(options, model) if layer.fields]
    if not own and named is None:
        return agent
    weaker = [] if named is None else [_layer_of(named, "the named agent")]
    try:
        changed = parse_agent(merge_layers([*weaker, _layer_of(agent, "the batch"), *own]))
    except BadAgent as error:
        raise Invalid(str(error)) from error
    check_code_names(changed)
    return changed


def _layer_of(agent: Agent, source: str) -> Layer:
    fields = agent.model_dump(mode="json", exclude_unset=True)
    return Layer(source, fields, agent.sources)


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
    for delegate in agent.delegates:
        check_code_names(delegate.agent)


def _check_condenser(name: str) -> None:
    if not (is_reference(name) or name in find_entry_points("perdure.condensers")):
        raise _unknown("condenser", name, CONDENSER_KINDS)


def _unknown(kind: str, name: str, known: Iterable[str]) -> Invalid:
    message = f"There is no {kind} {name!r}: there are {', '.join(known)}."
    return Invalid(message, "Name one of your own as module:attribute.")


def option_layers(options: AgentFieldOptions, model: str | None = None) -> list[Layer]:
    """Return the layers of the agent file, of `-c`, and of the other options. Raises Invalid."""
    path = options.agent_file
    file = {} if path is None else read_agent_fields(path)
    config = resolve_paths(parse_assignments(options.config or []))
    if problem := find_unknown_field(config):
        raise Invalid(f"-c: {problem.sentence}")
    named = {"model": model} if model else {}
    own = merge_layers([Layer("options", _option_fields(options)), Layer("options", named)]).fields
    own = resolve_paths(own)
    if (name := own.get("model", {}).get("name")) and "model" in config:
        # What `-c` says of a model, it says of the one that is named beside it.
        beside = Layer("options", {"model": {"name": name}})
        config = merge_layers([beside, Layer("-c", config), beside]).fields
    if "repository" in own and not config.keys().isdisjoint(OF_REPOSITORY):
        config = {"repository": own["repository"], **config}  # likewise
    return [Layer(f"{path}", file), Layer("-c", config), Layer("options", own)]


def _option_fields(options: AgentFieldOptions) -> Fields:
    """Return the fields that the options set one by one. Raises Invalid."""
    fields: dict[str, Any] = {
        "model": _model_fields(options) or None,
        "limits": _limit_fields(options) or None,
        "skills": options.skills and {"folders": _check_folders(options.skills)},
        "fallbacks": options.fallbacks,
        "system_prompt": _read_text(options.system_prompt),
        "instructions": _read_text(options.instructions),
        "condenser": _condenser_fields(options) or None,
        "tools": options.tools and options.tools.split(","),
        "mcp": options.mcp and [server.model_dump() for server in load_servers(options.mcp)],
        "workspace": options.workspace and str(options.workspace),
        "network": options.network,
        "confirmation": options.confirm
        and parse_confirmation(options.confirm).model_dump(exclude_unset=True),
        "secrets": options.secrets and _check_secret_names(options.secrets),
        "tags": options.tags,
        "repository": options.repository,
        "branch": options.branch,
        "repository_token": options.repository_token
        and _check_secret_names([options.repository_token])[0],
        "git_user_name": options.git_user_name,
        "git_user_email": options.git_user_email,
        "metadata": options.metadata and _parse_metadata(options.metadata),
        "app_name": options.app_name,
        "parent": options.parent and _check_parent(options.parent),
        "hidden": options.hidden,
    }
    return _without_nones(fields)


def _check_parent(text: str) -> str:
    if not is_conversation_id(text):
        raise Invalid(
            f"--parent {text!r} is not the whole id of a conversation.", "`perdure ls` lists them."
        )
    return text


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


def _condenser_fields(options: AgentFieldOptions) -> Fields:
    """Return the condenser's fields; sizes alone are those of the default one. Raises Invalid."""
    kind = _parse_condenser(options.condenser) if options.condenser else {}
    sizes = {"max_size": options.condenser_max_size, "keep_first": options.condenser_keep_first}
    return {**kind, **_without_nones(sizes)}


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
                f"{name!r} is no name of a secret: name one, such as API_TOKEN.",
                "Hand its value in by `perdure secret set API_TOKEN`, or let the worker have it in "
                "PERDURE_SECRETS or PERDURE_SECRET_API_TOKEN.",
            )
    return secrets


def _parse_metadata(pairs: list[str]) -> dict[str, str]:
    """Raises Invalid."""
    parsed = dict(pair.partition("=")[::2] for pair in pairs)
    if lacking := [pair for pair in pairs if "=" not in pair]:
        raise Invalid(f"{lacking[0]!r} is no pair: write it as KEY=VALUE.")
    return parsed


def _check_folders(folders: list[Path]) -> list[str]:
    """Raises Invalid."""
    for folder in folders:
        if not folder.is_dir():
            raise Invalid(f"{folder} is no folder of skills.")
    return list(map(str, folders))
