"""A server of the Model Context Protocol that does what servers do: `python mcp_server.py`.

Its files are in its working directory: `calls` has a line for each call of `note`.
"""

import asyncio
import os
from pathlib import Path
from typing import Any

from mcp.server.context import HandlerResult, ServerRequestContext
from mcp.server.mcpserver import Context, MCPServer
from mcp.shared.exceptions import MCPError
from mcp_types import (
    METHOD_NOT_FOUND,
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)

READ_ONLY = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
PICTURE = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"
    "AAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def add(a: int, b: int = 1) -> int:
    """Add two whole numbers."""
    return a + b


def note(text: str) -> str:
    """Write a line."""
    with Path("calls").open("a") as calls:
        calls.write(f"{text}\n")
    return f"noted {text}"


def note_and_die(text: str) -> str:
    """Write a line, and die before the answer; but only once."""
    first = not Path("calls").exists()
    answer = note(text)
    if first:
        os._exit(1)
    return answer


async def wait(seconds: float, context: Context[Any]) -> str:
    """Wait, tell how far it is, and write down when it is cancelled."""
    try:
        await context.report_progress(1, 4, "waiting")
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        note("cancelled")
        raise
    return "waited"


def fail() -> str:
    """Always fails."""
    raise ValueError("no such thing")


def long(characters: int) -> str:
    """A long text."""
    return "x" * characters


def surroundings() -> dict[str, Any]:
    """Report the server's working directory and environment."""
    return {"cwd": str(Path.cwd()), "pid": os.getpid(), "environment": dict(os.environ)}


def everything() -> CallToolResult:
    """Return one block of each kind of content."""
    return CallToolResult(
        content=[
            TextContent(text="a text"),
            ImageContent(data=PICTURE, mime_type="image/jpeg"),
            ImageContent(data="bm9uZQ==", mime_type="image/png"),
            AudioContent(data="c291bmQ=", mime_type="audio/wav"),
            ResourceLink(name="book", uri="file:///book", description="worth reading"),
            EmbeddedResource(resource=TextResourceContents(uri="file:///page", text="a page")),
            EmbeddedResource(resource=BlobResourceContents(uri="file:///blob", blob="???")),
        ],
        structured_content={"more": [1, 2]},
    )


def make(legacy: bool = False) -> MCPServer:
    """The server; a `legacy` one speaks only versions of the protocol that have sessions."""
    server: MCPServer = MCPServer("test", middleware=[_legacy] if legacy else [], log_level="ERROR")

    async def change(context: Context[Any]) -> str:
        """Take `fail` away and offer `newcomer` instead."""
        server.remove_tool("fail")
        server.add_tool(add, name="newcomer")
        if legacy:
            await context.session.send_tool_list_changed()
        else:
            await context.notify_tools_changed()
        return "changed"

    for tool in (note, wait, fail, long, surroundings, everything, change):
        server.add_tool(tool)
    server.add_tool(add, annotations=READ_ONLY)
    server.add_tool(note_and_die, name="note.and.die", structured_output=False)
    server.add_tool(note_and_die, name="look_and_die", annotations=READ_ONLY)
    return server


async def _legacy(ctx: ServerRequestContext[Any, Any], call_next: Any) -> HandlerResult:
    if ctx.method == "server/discover":
        raise MCPError(METHOD_NOT_FOUND, "Method not found")
    result: HandlerResult = await call_next(ctx)
    return result


if __name__ == "__main__":
    make().run("stdio")
