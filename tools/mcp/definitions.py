"""What a model is told of another server's tools."""

import hashlib
import re
from typing import TYPE_CHECKING

from agent.spec import McpServer
from events.content import ToolAnnotations, ToolDefinition

if TYPE_CHECKING:
    from mcp_types import Tool

# What OpenAI, Anthropic and Gemini all take.
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_KEPT = 55
"""Characters of a name that has to be changed; `_` and a hash of eight make it 64."""


def public_name(server: str, tool: str) -> str:
    """What the model calls `tool` of `server`: the same everywhere and always.

    A name that no provider would take is made to fit, and told from its like by a hash.
    """
    name = f"{server}__{tool}"
    if _NAME.fullmatch(name):
        return name
    mark = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{_fitted(name)}_{mark}"


def beginning(server: str) -> str:
    """How the names of all the tools of `server` begin."""
    return _fitted(f"{server}__")


def _fitted(name: str) -> str:
    fitted = re.sub(r"[^A-Za-z0-9_-]", "_", name)
    return (fitted if _NAME.match(fitted) else f"_{fitted}")[:_KEPT]


def definition_of(server: McpServer, tool: "Tool") -> ToolDefinition:
    """`tool` as the model is told of it, with its hints as far as `server` is trusted."""
    return ToolDefinition(
        name=public_name(server.name, tool.name),
        description=tool.description or tool.title or "",
        parameters={"type": "object", "properties": {}, **tool.input_schema},
        annotations=_annotations(tool, server.trusted),
    )


def _annotations(tool: "Tool", trusted: bool) -> ToolAnnotations:
    hints = tool.annotations
    title = tool.title or (hints.title if hints else None)
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
