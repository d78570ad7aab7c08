"""The text of a message, from the command line or stdin, and its images."""

import base64
import mimetypes
import sys
from collections.abc import Sequence
from pathlib import Path

from perdure.errors import Invalid


def read_text(argument: str) -> str:
    """Return the argument, or all of stdin where it is `-`. Raises Invalid where not UTF-8."""
    try:
        return sys.stdin.read() if argument == "-" else argument
    except UnicodeDecodeError as error:
        raise Invalid("What was given on stdin is no text in UTF-8: convert it first.") from error


def load_images(sources: Sequence[str]) -> tuple[str, ...]:
    """Keep addresses; encode files as `data:image/…`. Raises Invalid."""
    return tuple(map(_load_image, sources))


def _load_image(source: str) -> str:
    if source.startswith(("http://", "https://", "data:")):
        return source
    kind = mimetypes.guess_type(source)[0] or ""
    if not kind.startswith("image/"):
        raise Invalid(f"{source} is no image: name a .png, .jpg, .gif or .webp, or an address.")
    try:
        data = Path(source).read_bytes()
    except OSError as error:
        raise Invalid(f"{source} cannot be read ({error.strerror}).") from error
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"
