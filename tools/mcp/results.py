"""What came of a call to another server's tool, as the log keeps it and the model is shown it."""

import base64
import json
from typing import Any

from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    ResourceLink,
    TextResourceContents,
)
from mcp_types import ImageContent as McpImage
from mcp_types import TextContent as McpText

from events.content import Content, ImageContent, TextContent
from events.observations import MCPToolObservation
from tools.editing import image
from tools.output import Output
from tools.tool import Context

LARGEST_IMAGE = 3_750_000
"""Bytes of an image that is shown; in base64, no provider takes more than 5 MB of them all."""


async def observed(name: str, result: CallToolResult, context: Context) -> MCPToolObservation:
    """`result` with its texts joined, its images after them, and a note for what is neither."""
    parts = [await _part(block, context) for block in result.content]
    texts = [part for part in parts if isinstance(part, str)]
    if result.structured_content is not None and not _repeats(texts, result.structured_content):
        texts.append(json.dumps(result.structured_content, ensure_ascii=False))
    with Output() as output:
        output.take("\n".join(texts).encode(errors="replace"))
        text, _ = await output.shown(context)
    content: list[Content] = [TextContent(text=text)] if text else []
    content += [part for part in parts if isinstance(part, ImageContent)]
    return MCPToolObservation(tool_name=name, content=tuple(content), is_error=result.is_error)


async def _part(block: ContentBlock, context: Context) -> str | ImageContent:
    match block:
        case McpText():
            return block.text
        case McpImage():
            return await _bytes("image", block.mime_type, block.data, context)
        case AudioContent():
            return await _bytes("audio", block.mime_type, block.data, context)
        case ResourceLink():
            about = f": {block.description}" if block.description else ""
            return f"[resource {block.name}, at {block.uri}{about}]"
    match block.resource:
        case TextResourceContents() as resource:
            return f"[resource {resource.uri}]\n{resource.text}"
        case BlobResourceContents() as resource:
            what = f"resource {resource.uri}"
            return await _bytes(what, resource.mime_type, resource.blob, context)


async def _bytes(what: str, kind: str | None, data: str, context: Context) -> str | ImageContent:
    """An image that a model can look at, or a note of where the bytes are kept."""
    what = f"{what} of type {kind or 'unknown'}"
    try:
        body = base64.b64decode("".join(data.split()), validate=True)
    except ValueError:
        return f"[{what}, which cannot be read: it is not base64]"
    if (kind := image.kind_of(body)) and len(body) <= LARGEST_IMAGE:
        return ImageContent(image_urls=(f"data:{kind};base64,{base64.b64encode(body).decode()}",))
    return f"[{what}, {len(body):,} bytes, kept as {await context.keep(body)}]"


def _repeats(texts: list[str], structured: Any) -> bool:
    """Whether the texts say all of it already, as servers do for clients that know only texts."""
    said = [_decoded(text) for text in texts]
    whole = structured.get("result") if _is_wrapped(structured) else structured
    return any(value in (structured, whole) for value in (*said, *texts, said, texts))


def _is_wrapped(structured: Any) -> bool:
    return isinstance(structured, dict) and structured.keys() == {"result"}


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
