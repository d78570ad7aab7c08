"""The agent that the options of a command describe, with its MCP servers from a file."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from perdure.agent.policies import Confirmation
from perdure.agent.spec import Agent, McpServer, ModelSpec, Skills
from perdure.cli.arguments import parse_moment
from perdure.cli.options import CONDENSER_KINDS, AgentOptions
from perdure.cli.workspaces import check_workspace
from perdure.errors import Invalid
from perdure.references import find_entry_points, is_reference
from perdure.tools.catalog import BUILT_IN_TOOLS, is_known_tool

VARIABLE_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")

SERVER_FIELDS = set(McpServer.model_fields) - {"name"}

TRANSPORTS = ("stdio", "http", "streamable-http", "streamable_http")


def build_agent(options: AgentOptions, model: ModelSpec) -> Agent:
    """Build the agent that asks `model`. Raises Invalid."""
    deadline, now = options.deadline, datetime.now(UTC)
    limits = {
        "max_iterations": options.max_iterations,
        "max_budget": options.max_budget,
        "deadline": parse_moment(deadline, now) if deadline else None,
    }
    fields = {
        "limits": {name: limit for name, limit in limits.items() if limit is not None},
        "workspace": options.workspace and str(options.workspace.absolute()),
        "tools": options.tools is not None and tuple(options.tools.split(",")),
        "confirmation": options.confirm is not None and parse_confirmation(options.confirm),
        "condenser": options.condenser and _parse_condenser(options.condenser),
        "mcp": options.mcp and read_servers(options.mcp),
        "skills": options.skills and _parse_skills(options.skills),
        "tags": options.tags and tuple(options.tags),
        "secrets": options.secrets and _check_secret_names(options.secrets),
    }
    changes = {name: field for name, field in fields.items() if field}
    return Agent.model_validate({"model": model, **changes})


def check_agent_options(options: AgentOptions) -> None:
    """Validate all options before anything is started. Raises Invalid."""
    for name in (options.tools or "terminal").split(","):
        if not is_known_tool(name):
            raise Invalid(
                f"There is no tool {name!r}: there are {', '.join(BUILT_IN_TOOLS)}.",
                "Name one of your own as module:attribute.",
            )
    build_agent(options, ModelSpec(name="any"))
    if options.workspace is not None:
        check_workspace(options.workspace)


def _parse_condenser(text: str) -> dict[str, str]:
    """Raises Invalid."""
    if text in CONDENSER_KINDS:
        return {"kind": text}
    if is_reference(text) or text in find_entry_points("perdure.condensers"):
        return {"kind": "custom", "function": text}
    raise Invalid(f"There is no condenser {text!r}: use {', '.join(CONDENSER_KINDS)}.")


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


def _parse_skills(folders: list[Path]) -> Skills:
    """Make the paths absolute: the worker has another working directory. Raises Invalid."""
    for folder in folders:
        if not folder.is_dir():
            raise Invalid(f"{folder} is no folder of skills.")
    return Skills(folders=tuple(str(folder.absolute()) for folder in folders))


def read_servers(path: Path) -> tuple[McpServer, ...]:
    """Read the servers of a file. Raises Invalid, which names the file and the server."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        reason = error.strerror or str(error)
        raise Invalid(f"The MCP file {path} cannot be read ({reason}).") from error
    except ValueError as error:
        raise Invalid(f"{path} is not valid JSON: {error}.") from error
    except RecursionError as error:
        raise Invalid(f"{path} is nested too deeply: write it flatter.") from error
    servers = content.get("mcpServers") if isinstance(content, dict) else None
    if not isinstance(servers, dict) or not servers:
        raise Invalid(f'{path} names no MCP server: write {{"mcpServers": {{"name": ...}}}}.')
    return tuple(_parse_server(path, name, fields) for name, fields in servers.items())


def _parse_server(path: Path, name: str, fields: Any) -> McpServer:
    if not isinstance(fields, dict):
        raise Invalid(f"{path}: the server {name!r} is not an object.")
    server_fields = dict(fields)
    if server_fields.pop("type", "stdio") not in TRANSPORTS:
        raise Invalid(f"{path}: {name!r} has an unknown type: use stdio or http.")
    if unknown := sorted(server_fields.keys() - SERVER_FIELDS):
        allowed = ", ".join(sorted(SERVER_FIELDS))
        raise Invalid(f"{path}: {name!r} has no {unknown[0]!r}; it may have {allowed}.")
    if (server_fields.get("command") is None) == (server_fields.get("url") is None):
        raise Invalid(f"{path}: {name!r} needs a `command` to start or a `url` to ask, not both.")
    for section in ("env", "headers"):
        values = server_fields.get(section) or {}
        server_fields[section] = _parse_variables(path, name, section, values)
    try:
        return McpServer.model_validate({**server_fields, "name": name})
    except ValidationError as error:
        fault = error.errors()[0]
        location = ".".join(map(str, fault["loc"]))
        raise Invalid(f"{path}: {name!r} at {location}: {fault['msg']}.") from error


def _parse_variables(
    path: Path, server: str, section: str, values: Mapping[str, Any]
) -> dict[str, str]:
    """Require `${NAME}` for each value, and return the names: the log must hold no secrets."""
    if not isinstance(values, dict):
        raise Invalid(f"{path}: `{section}` of {server!r} is not an object.")
    variables: dict[str, str] = {}
    for name, value in values.items():
        variable = VARIABLE_REFERENCE.fullmatch(str(value))
        if variable is None:
            suggestion = re.sub(r"\W", "_", name).upper()
            raise Invalid(
                f"{path}: {section}.{name} of {server!r} is written out, and a conversation must "
                "not hold secrets.",
                f'Put the whole value into a variable of the worker, and write "${{{suggestion}}}" '
                "here.",
            )
        variables[name] = variable[1]
    return variables
