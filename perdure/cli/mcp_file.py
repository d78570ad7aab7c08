"""Reader of MCP server files: `{"mcpServers": {name: {command, args, env}}}`."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from perdure.agent.spec import McpServer
from perdure.errors import Invalid

VARIABLE_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")

SERVER_FIELDS = set(McpServer.model_fields) - {"name"}

TRANSPORTS = ("stdio", "http", "streamable-http", "streamable_http")


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
        server_fields[section] = _parse_variables(
            path, name, section, server_fields.get(section) or {}
        )
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
            raise Invalid(
                f"{path}: {section}.{name} of {server!r} is written out, and a conversation must "
                "not hold secrets.",
                f'Put the whole value into a variable of the worker, and write "'
                f'${{{_suggest_variable(name)}}}" here.',
            )
        variables[name] = variable[1]
    return variables


def _suggest_variable(name: str) -> str:
    return re.sub(r"\W", "_", name).upper()
