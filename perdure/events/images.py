"""Images: their kinds, told by their first bytes, and references to those that are stored."""

import base64
import re

MEDIA_TYPES = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF.{4}WEBP", re.DOTALL),
}
"""The kinds that every provider takes."""

STORED_IMAGE = re.compile(r"blobs/[0-9a-f]{64}")
"""The reference to an image that is a blob of its conversation, in place of a URL."""


OMITTED_IMAGE = "[An image was here; this model is not shown images.]"
"""The text in the place of an image, for a model without vision."""


def detect_media_type(data: bytes) -> str | None:
    """Return the media type of an image by its content; None where it is of no known kind."""
    return next((kind for kind, head in MEDIA_TYPES.items() if head.match(data)), None)


def is_stored_image(url: str) -> bool:
    return STORED_IMAGE.fullmatch(url) is not None


def to_data_url(data: bytes) -> str:
    """Write an image as a URL that holds it."""
    kind = detect_media_type(data) or "application/octet-stream"
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"
