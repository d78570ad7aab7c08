"""Messages of users: from the blocks of a prompt, and as blocks again."""

from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from perdure.acp.requests import Block, ImageBlock, ResourceBlock, ResourceLink, TextBlock
from perdure.errors import Invalid
from perdure.events.content import ImageContent, TextContent
from perdure.events.images import detect_media_type
from perdure.events.messages import MessageEvent
from perdure.storage.log.readable import ReadableLog


@dataclass(frozen=True)
class Prompt:
    """A message of a user: its text, and its images as `data:` URLs."""

    text: str
    images: tuple[str, ...] = ()


def read_prompt(blocks: Iterable[Block]) -> Prompt:
    """Make one message of the blocks. Raises Invalid."""
    texts: list[str] = []
    images: list[str] = []
    for block in blocks:
        match block:
            case TextBlock():
                texts.append(block.text)
            case ImageBlock():
                images.append(f"data:{block.mimeType};base64,{block.data}")
            case ResourceLink():
                name = f"{block.name}: " if block.name else ""
                texts.append(f"[{name}{block.uri}]")
            case ResourceBlock():
                text, image = _read_resource(block)
                texts += [text] if text else []
                images += [image] if image else []
    return Prompt("\n".join(texts), tuple(images))


def _read_resource(block: ResourceBlock) -> tuple[str | None, str | None]:
    """Return the text of a resource, with its URI; or the image that it is. Raises Invalid."""
    resource = block.resource
    if resource.text is not None:
        return f'<resource uri="{resource.uri}">\n{resource.text}\n</resource>', None
    kind = resource.mimeType or ""
    if resource.blob is not None and kind.startswith("image/"):
        return f"[{resource.uri}]", f"data:{kind};base64,{resource.blob}"
    raise Invalid(
        f"The resource {resource.uri} is neither a text nor an image.",
        "Put its file into the workspace, and name it in a text.",
    )


async def show_message(log: ReadableLog, event: MessageEvent) -> list[dict[str, Any]]:
    """Return the blocks of a user's message; an image that cannot be read is left out."""
    blocks: list[dict[str, Any]] = []
    for content in event.llm_message.content:
        match content:
            case TextContent(text=text) if text:
                blocks.append({"type": "text", "text": text})
            case ImageContent(image_urls=urls):
                blocks += [block for url in urls if (block := await _show_image(log, url))]
    return blocks


async def _show_image(log: ReadableLog, url: str) -> dict[str, Any] | None:
    if url.startswith(("http://", "https://")):
        return {"type": "resource_link", "uri": url, "name": url}
    data = await log.read_blob(url) if url.startswith("blobs/") else None
    kind = detect_media_type(data) if data else None
    if data is None or kind is None:
        return None
    return {"type": "image", "mimeType": kind, "data": b64encode(data).decode()}
