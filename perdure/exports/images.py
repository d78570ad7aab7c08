"""Images, and their names in an export that has no room for them."""

import re

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
