"""Images, as a model is shown them."""

import base64

from events.content import ImageContent, TextContent
from sandbox.spot import Spot
from tools.tool import ToolFailed
from tools.workspace import printable

LARGEST = 5 * 1024 * 1024
"""Bytes of an image: what providers take at most."""

_KINDS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def image_type(spot: Spot) -> str | None:
    """The media type of an image that models can look at, told by how the file begins."""
    with spot.opened() as file:
        return kind_of(file.read(16))


def kind_of(head: bytes) -> str | None:
    """The media type of an image that begins so.

    Whatever others call it: an image under a wrong name is refused with the whole prompt.
    """
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _KINDS if head.startswith(magic)), None)


def shown(spot: Spot, name: str, kind: str) -> tuple[TextContent, ImageContent]:
    """The image itself and a line about it. Raises ToolFailed, OSError."""
    size, data = spot.read(LARGEST)
    if size > LARGEST:
        raise ToolFailed(
            f"`{printable(name)}` is an image of {size:,} bytes, and at most {LARGEST:,} can be "
            "shown: make a smaller one."
        )
    url = f"data:{kind};base64,{base64.b64encode(data).decode()}"
    said = TextContent(text=f"`{name}` is an image ({kind}, {size:,} bytes):")
    return said, ImageContent(image_urls=(url,))
