"""Texts and images of messages, as exports write them."""

import re
from collections.abc import Callable, Iterable
from typing import Any

from perdure.events.content import Content, ImageContent, TextContent, join_text
from perdure.events.images import OMITTED_IMAGE
from perdure.exports.json_text import Json

_DATA = re.compile(r"data:(image/[a-z0-9.+-]+);base64,", re.IGNORECASE)
_ENDING = re.compile(r"\.(png|jpe?g|gif|webp)(?:[?#].*)?$", re.IGNORECASE)

SAFE_MEDIA_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""Media types that every reader can show, and that cannot hold a script."""


def media_type(url: str) -> str | None:
    """Return the media type of the image behind the URL, if the URL tells."""
    if inline := _DATA.match(url):
        return inline[1].lower()
    if ending := _ENDING.search(url):
        return f"image/{ending[1].lower().replace('jpg', 'jpeg')}"
    return None


def is_inline(url: str) -> bool:
    """Check whether the URL itself holds the image."""
    return _DATA.match(url) is not None


def describe_image(url: str) -> str:
    """Name the image by its address, or by its type if it is inline."""
    return f"[image: {media_type(url) if is_inline(url) else url}]"


def content_items(parts: Iterable[Content], image: Callable[[str], Json]) -> list[Json]:
    """Format content as a list of texts and of images, each as `image` formats its URL."""
    items: list[Json] = []
    for part in parts:
        if isinstance(part, TextContent):
            items.append({"type": "text", "text": part.text})
        else:
            items += map(image, part.image_urls)
    return items


def plain_text(parts: Iterable[Content], *, shows_images: bool = True) -> str:
    """Return the parts as text, with images named, or left out with a note, where they stood."""
    describe = describe_image if shows_images else lambda _: OMITTED_IMAGE
    items = content_items(parts, lambda url: {"text": describe(url)})
    return "\n".join(item["text"] for item in items)


def chat_content(parts: Iterable[Content]) -> Any:
    """Format content for chat completions: plain text if there is only text."""
    parts = tuple(parts)
    if not any(isinstance(part, ImageContent) for part in parts):
        return join_text(parts)
    return content_items(parts, lambda url: {"type": "image_url", "image_url": {"url": url}})
