"""MCP servers as other agents' files name them: `{"mcpServers": {name: {command, args, env}}}`."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agent.spec import McpServer
from client.errors import Invalid

VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")

FIELDS = set(McpServer.model_fields) - {"name"}

TRANSPORTS = ("stdio", "http", "streamable-http", "streamable_http")


def read_servers(path: Path) -> tuple[McpServer, ...]:
    """Raises Invalid with a sentence that names the file and the server."""
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
    return tuple(_server(path, name, fields) for name, fields in servers.items())


def _server(path: Path, name: str, fields: Any) -> McpServer:
    if not isinstance(fields, dict):
        raise Invalid(f"{path}: the server {name!r} is not an object.")
    given = dict(fields)
    if given.pop("type", "stdio") not in TRANSPORTS:
        raise Invalid(f"{path}: {name!r} has an unknown type: use stdio or http.")
    if strays := sorted(given.keys() - FIELDS):
        have = ", ".join(sorted(FIELDS))
        raise Invalid(f"{path}: {name!r} has no {strays[0]!r}; it may have {have}.")
    if (given.get("command") is None) == (given.get("url") is None):
        raise Invalid(f"{path}: {name!r} needs a `command` to start or a `url` to ask, not both.")
    for one in ("env", "headers"):
        given[one] = _variables(path, name, one, given.get(one) or {})
    try:
        return McpServer.model_validate({**given, "name": name})
    except ValidationError as error:
        wrong = error.errors()[0]
        at = ".".join(map(str, wrong["loc"]))
        raise Invalid(f"{path}: {name!r} at {at}: {wrong['msg']}.") from error


def _variables(path: Path, server: str, where: str, given: Mapping[str, Any]) -> dict[str, str]:
    """Names of the worker's variables: a value itself would stand in the log for ever."""
    if not isinstance(given, dict):
        raise Invalid(f"{path}: `{where}` of {server!r} is not an object.")
    found: dict[str, str] = {}
    for name, value in given.items():
        variable = VARIABLE.fullmatch(str(value))
        if variable is None:
            raise Invalid(
                f"{path}: {where}.{name} of {server!r} is written out, and a conversation must "
                "not hold secrets.",
                f'Put the whole value into a variable of the worker, and write "${{{_upper(name)}'
                '}" here.',
            )
        found[name] = variable[1]
    return found


def _upper(name: str) -> str:
    return re.sub(r"\W", "_", name).upper()
