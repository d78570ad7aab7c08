"""Images as content for a model."""

import base64

from perdure.events.content import ImageContent, TextContent
from perdure.sandbox.safe_path import SafePath
from perdure.tools.tool import ToolFailed
from perdure.tools.workspace import printable

MAX_IMAGE_BYTES = 5 * 1024 * 1024
"""The largest image that providers accept."""

_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def read_image_type(path: SafePath) -> str | None:
    """Return the media type of an image that models accept, detected from the file's content."""
    with path.open() as file:
        return detect_image_type(file.read(16))


def detect_image_type(head: bytes) -> str | None:
    """Return the media type of an image from its first bytes; None for anything else.

    A declared type is not trusted: providers reject the whole prompt for a wrong one.
    """
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _SIGNATURES if head.startswith(magic)), None)


def render_image(path: SafePath, name: str, media_type: str) -> tuple[TextContent, ImageContent]:
    """Return a caption and the image. Raises ToolFailed, OSError."""
    size, data = path.read(MAX_IMAGE_BYTES)
    if size > MAX_IMAGE_BYTES:
        raise ToolFailed(
            f"`{printable(name)}` is an image of {size:,} bytes, and at most {MAX_IMAGE_BYTES:,} "
            "can be shown: make a smaller one."
        )
    caption = TextContent(text=f"`{name}` is an image ({media_type}, {size:,} bytes):")
    return caption, image_content(media_type, data)


def image_content(media_type: str, data: bytes) -> ImageContent:
    """Return the image as a data URL."""
    url = f"data:{media_type};base64,{base64.b64encode(data).decode()}"
    return ImageContent(image_urls=(url,))
