"""Images that go with a message."""

import base64
import mimetypes
from collections.abc import Sequence
from pathlib import Path

from client.errors import Invalid


def images_of(given: Sequence[str]) -> tuple[str, ...]:
    """Addresses as they are; a file as `data:image/…`. Raises Invalid."""
    return tuple(map(_image, given))


def _image(given: str) -> str:
    if given.startswith(("http://", "https://", "data:")):
        return given
    kind = mimetypes.guess_type(given)[0] or ""
    if not kind.startswith("image/"):
        raise Invalid(f"{given} is no image: name a .png, .jpg, .gif or .webp, or an address.")
    try:
        data = Path(given).read_bytes()
    except OSError as error:
        raise Invalid(f"{given} cannot be read ({error.strerror}).") from error
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"
