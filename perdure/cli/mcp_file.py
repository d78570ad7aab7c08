"""MCP servers from a file as Claude Desktop, Cursor, Cline and VS Code write it."""

import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from perdure.agent.extensions import McpServer
from perdure.cli.output import note
from perdure.errors import Invalid

VARIABLE_REFERENCE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)\}")
OTHER_REFERENCE = re.compile(r"\$\{(?!(?:env:)?[A-Za-z_][A-Za-z0-9_]*\})[^}]*\}")

OWN_FIELDS = set(McpServer.model_fields) - {"name", "env_values", "header_values"}

IGNORED_FIELDS = {
    *("alwaysAllow", "autoApprove", "description", "dev", "gallery", "icon", "note", "timeout"),
    *("trust", "version"),
}
"""Fields for other programs: without them a server is treated no less strictly."""

TRANSPORTS = ("stdio", "http", "streamable-http", "streamable_http", "streamableHttp")

SECRET_NAME = re.compile(r"TOKEN|KEY|SECRET|PASSW|CREDENTIAL|AUTHORIZATION", re.IGNORECASE)
SECRET_PREFIX = re.compile(
    r"(?:Bearer |Basic )|(?:sk|pk|rk|ghp|gho|ghs|xox[abp]|glpat|npm|hf|gsk)[-_]|github_pat_"
    r"|AKIA|AIza"
)
URL_PASSWORD = re.compile(r"://[^/\s@]*:[^/\s@]+@")
MIN_SECRET_CHARS = 20
MIN_SECRET_ENTROPY = 4.0
"""Bits a character; words and paths have fewer."""


def read_servers(path: Path) -> tuple[McpServer, ...]:
    """Read the servers of a file that are not disabled; note what is ignored or unwise.

    Raises Invalid, which names the file and the server.
    """
    entries = _read_entries(path)
    servers = [_parse_server(path, name, fields) for name, fields in entries.items()]
    for server in servers:
        _warn_of_secrets(path, server)
    return tuple(servers)


def _read_entries(path: Path) -> dict[str, Any]:
    """Read the servers as the file has them, without those that are disabled."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        reason = error.strerror or str(error)
        raise Invalid(f"The MCP file {path} cannot be read ({reason}).") from error
    except ValueError as error:
        raise Invalid(f"{path} is not valid JSON: {error}.") from error
    except RecursionError as error:
        raise Invalid(f"{path} is nested too deeply: write it flatter.") from error
    content = content if isinstance(content, dict) else {}
    servers = content.get("mcpServers") or content.get("servers")
    if not isinstance(servers, dict) or not servers:
        raise Invalid(f'{path} names no MCP server: write {{"mcpServers": {{"name": ...}}}}.')
    disabled = [name for name, fields in servers.items() if _is_disabled(fields)]
    if disabled:
        note(f"{path}: not started, as the file says: {', '.join(disabled)}.")
    return {name: fields for name, fields in servers.items() if name not in disabled}


def _is_disabled(fields: Any) -> bool:
    is_object = isinstance(fields, dict)
    return is_object and (fields.get("disabled") is True or fields.get("enabled") is False)


def _parse_server(path: Path, name: str, fields: Any) -> McpServer:
    if not isinstance(fields, dict):
        raise Invalid(f"{path}: the server {name!r} is not an object.")
    server_fields = _known_fields(path, name, fields)
    if (server_fields.get("command") is None) == (server_fields.get("url") is None):
        raise Invalid(f"{path}: {name!r} needs a `command` to start or a `url` to ask, not both.")
    for section, values in (("env", "env_values"), ("headers", "header_values")):
        stated = server_fields.pop(section, None) or {}
        variables, texts = _parse_values(path, name, section, stated)
        server_fields |= {section: variables, values: texts}
    try:
        return McpServer.model_validate({**server_fields, "name": name})
    except ValidationError as error:
        fault = error.errors()[0]
        location = ".".join(map(str, fault["loc"]))
        raise Invalid(f"{path}: {name!r} at {location}: {fault['msg']}.") from error


def _known_fields(path: Path, name: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that are ours. Raises Invalid for those of no program that we know."""
    others = {"type", "transport", "disabled", "enabled", *IGNORED_FIELDS}
    transport = fields.get("type", fields.get("transport", "stdio"))
    if transport not in TRANSPORTS:
        raise Invalid(f"{path}: {name!r} has the type {transport!r}: use stdio or http.")
    if unknown := sorted(fields.keys() - OWN_FIELDS - others):
        allowed = ", ".join(sorted(OWN_FIELDS))
        raise Invalid(f"{path}: {name!r} has no {unknown[0]!r}; it may have {allowed}.")
    if ignored := sorted(fields.keys() & IGNORED_FIELDS):
        note(f"{path}: {', '.join(ignored)} of {name!r} is for other programs, and not used.")
    return {key: value for key, value in fields.items() if key in OWN_FIELDS}


def _parse_values(
    path: Path, server: str, section: str, values: Any
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the names of the variables whose values are needed, and the values written out."""
    if not isinstance(values, dict):
        raise Invalid(f"{path}: `{section}` of {server!r} is not an object.")
    variables: dict[str, str] = {}
    texts: dict[str, str] = {}
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise Invalid(f"{path}: {section}.{name} of {server!r} is no text.")
        text = str(value)
        if foreign := OTHER_REFERENCE.search(text):
            raise Invalid(
                f"{path}: {section}.{name} of {server!r} has {foreign[0]}, which only an editor "
                "knows.",
                "Write the value itself, or ${NAME} for a variable of the worker.",
            )
        if whole := VARIABLE_REFERENCE.fullmatch(text):
            variables[name] = whole[1]
        else:
            texts[name] = VARIABLE_REFERENCE.sub(r"${\1}", text)
    return variables, texts


def _warn_of_secrets(path: Path, server: McpServer) -> None:
    sections: dict[str, Mapping[str, str]] = {
        "env": server.env_values,
        "headers": server.header_values,
    }
    for section, values in sections.items():
        for name in [name for name, text in values.items() if looks_secret(name, text)]:
            variable = re.sub(r"\W", "_", name).upper()
            note(
                f"{path}: {section}.{name} of {server.name!r} looks like a secret, and is written "
                "into the log of every conversation with this file. Put it into a variable of the "
                f'worker, and write "${{{variable}}}" here.',
                "yellow",
            )


def looks_secret(name: str, text: str) -> bool:
    """Tell whether a value looks like a secret: by its name, how it begins, or its characters."""
    rest = VARIABLE_REFERENCE.sub("", text)
    if rest != text:  # the secret part is a variable's
        return False
    if "://" in text:
        return URL_PASSWORD.search(text) is not None
    if not text or text.startswith(("/", "./", "~")):
        return False
    if SECRET_PREFIX.match(text) or (SECRET_NAME.search(name) and len(text) > 1):
        return True
    is_word = text.isascii() and not re.search(r"\s", text) and re.search(r"\d", text)
    return bool(is_word) and len(text) >= MIN_SECRET_CHARS and _entropy(text) >= MIN_SECRET_ENTROPY


def _entropy(text: str) -> float:
    """Compute the bits of information in a character of the text."""
    shares = [count / len(text) for count in Counter(text).values()]
    return -sum(share * math.log2(share) for share in shares)
