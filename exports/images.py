"""Images as an export names them where it has no room for them."""

import re

_DATA = re.compile(r"data:(image/[a-z0-9.+-]+);base64,", re.IGNORECASE)
_ENDING = re.compile(r"\.(png|jpe?g|gif|webp)(?:[?#].*)?$", re.IGNORECASE)

SHOWABLE = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""What every reader can show, and no script can be in."""


def media_type(url: str) -> str | None:
    """What kind of image is behind the URL, as far as it tells."""
    if inline := _DATA.match(url):
        return inline[1].lower()
    if ending := _ENDING.search(url):
        return f"image/{ending[1].lower().replace('jpg', 'jpeg')}"
    return None


def is_inline(url: str) -> bool:
    """Whether the URL itself holds the image."""
    return _DATA.match(url) is not None


def named(url: str) -> str:
    """The image in a few words: its address, or what it is where it has none."""
    return f"[image: {media_type(url) if is_inline(url) else url}]"
