"""Definitions of MCP tools for the model, and the validation of its arguments against them.

It needs the recorded definition only, so that a call can be parsed while the server is down.
"""

import hashlib
import re
from typing import TYPE_CHECKING, Any

from perdure.agent.extensions import McpServer
from perdure.events.content import ToolAnnotations, ToolDefinition
from perdure.tools.function import TOOL_NAME
from perdure.tools.shape import coerce

if TYPE_CHECKING:
    from mcp_types import Tool

_MAX_FITTED_CHARACTERS = 55
"""`_` and a hash of eight characters after it make 64."""


def public_name(server: str, tool: str) -> str:
    """Return the model's name for `tool` of `server`, the same on every worker.

    A name that providers would reject is sanitized, and made unique by a hash.
    """
    name = f"{server}__{tool}"
    if TOOL_NAME.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{_sanitize(name)}_{digest}"


def name_prefix(server: str) -> str:
    """Return the prefix of the names of all tools of `server`."""
    return _sanitize(f"{server}__")


def _sanitize(name: str) -> str:
    sanitized = re.sub(r"[^A-Za-z0-9_-]", "_", name)
    return (sanitized if TOOL_NAME.match(sanitized) else f"_{sanitized}")[:_MAX_FITTED_CHARACTERS]


def make_definition(server: McpServer, tool: "Tool") -> ToolDefinition:
    """Make the definition of `tool`; its hints count only if `server` is trusted."""
    return ToolDefinition(
        name=public_name(server.name, tool.name),
        description=tool.description or tool.title or "",
        parameters={"type": "object", "properties": {}, **tool.input_schema},
        annotations=_annotations(tool, server.trusted),
    )


def _annotations(tool: "Tool", trusted: bool) -> ToolAnnotations:
    hints = tool.annotations
    title = tool.title or (hints and hints.title)
    if hints is None or not trusted:
        return ToolAnnotations(title=title)
    read_only = bool(hints.read_only_hint)
    return ToolAnnotations(
        title=title,
        readOnlyHint=read_only,
        destructiveHint=hints.destructive_hint is not False and not read_only,
        idempotentHint=bool(hints.idempotent_hint),
        openWorldHint=hints.open_world_hint is not False,
    )


def fit_arguments(schema: dict[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """Validate the arguments, coercing them to `schema` where only one meaning is possible.

    A schema that cannot be evaluated is for the server. Raises ValueError with a sentence.
    """
    # Imported late: jsonschema takes as long to import as half of the worker's own modules.
    from perdure.tools.mcp.schema import find_errors

    if not find_errors(schema, arguments):
        return arguments
    coerced = coerce(arguments, schema)
    if errors := find_errors(schema, coerced):
        raise ValueError("; ".join(dict.fromkeys(errors)) + ".")
    return coerced
