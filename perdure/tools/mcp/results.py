"""Conversion of an MCP tool's result to an observation."""

import base64
import json
from typing import Any

import mcp_types

from perdure.events.content import Content, ImageContent, TextContent
from perdure.events.observations import MCPToolObservation
from perdure.tools.listing import detect_image_type, image_content
from perdure.tools.output import Output
from perdure.tools.tool import Context

MAX_IMAGE_BYTES = 3_750_000
"""The largest image that the model gets: 5 MB in base64, the limit of providers."""


async def to_observation(
    name: str, result: mcp_types.CallToolResult, context: Context
) -> MCPToolObservation:
    """Convert `result`: joined texts, then images, with a note for any other content."""
    parts = [await _convert_block(block, context) for block in result.content]
    texts = [part for part in parts if isinstance(part, str)]
    if result.structured_content is not None and not _repeats(texts, result.structured_content):
        texts.append(json.dumps(result.structured_content, ensure_ascii=False))
    with Output() as output:
        output.write("\n".join(texts).encode(errors="replace"))
        text, _ = await output.render(context)
    content: list[Content] = [TextContent(text=text)] if text else []
    content += [part for part in parts if isinstance(part, ImageContent)]
    return MCPToolObservation(tool_name=name, content=tuple(content), is_error=result.is_error)


async def _convert_block(block: mcp_types.ContentBlock, context: Context) -> str | ImageContent:
    match block:
        case mcp_types.TextContent():
            return block.text
        case mcp_types.ImageContent() | mcp_types.AudioContent():
            return await _convert_bytes(block.type, block.mime_type, block.data, context)
        case mcp_types.ResourceLink():
            description = f": {block.description}" if block.description else ""
            return f"[resource {block.name}, at {block.uri}{description}]"
    match block.resource:
        case mcp_types.TextResourceContents() as resource:
            return f"[resource {resource.uri}]\n{resource.text}"
        case mcp_types.BlobResourceContents() as resource:
            label = f"resource {resource.uri}"
            return await _convert_bytes(label, resource.mime_type, resource.blob, context)


async def _convert_bytes(
    label: str, media_type: str | None, data: str, context: Context
) -> str | ImageContent:
    """Return an image that the model can see, or a note with the key of the stored bytes."""
    label = f"{label} of type {media_type or 'unknown'}"
    try:
        body = base64.b64decode("".join(data.split()), validate=True)
    except ValueError:
        return f"[{label}, which cannot be read: it is not base64]"
    if (media_type := detect_image_type(body)) and len(body) <= MAX_IMAGE_BYTES:
        return image_content(media_type, body)
    return f"[{label}, {len(body):,} bytes, kept as {await context.keep(body)}]"


def _repeats(texts: list[str], structured: Any) -> bool:
    """Return whether the texts repeat the structured content, as servers do for older clients."""
    decoded = [_decode(text) for text in texts]
    is_wrapped = isinstance(structured, dict) and structured.keys() == {"result"}
    whole = structured["result"] if is_wrapped else structured
    return any(value in (structured, whole) for value in (*decoded, *texts, decoded, texts))


def _decode(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
