"""Messages with images, which are stored as blobs of their conversation before they are sent."""

import base64
import re
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

from perdure.agent.loop.inbox import UserMessage, find_message_error
from perdure.client.ids import new_message_id
from perdure.errors import Invalid
from perdure.events.images import detect_media_type
from perdure.storage.keys import blob_key
from perdure.storage.log.event_log import EventLog

MAX_IMAGES = 20
"""Images of one message that every provider takes."""

MAX_IMAGE_BYTES = 5 * 1024 * 1024
"""The size of an image that providers take."""

DATA_URL = re.compile(r"data:[^,;]*;base64,(.*)", re.DOTALL)

Image: TypeAlias = str | Path | bytes
"""An image by its address, as `data:image/...`, by its file, or as its bytes."""


def make_message(
    text: str, message_id: str | None, images: Sequence[Image], reopen: bool = False
) -> tuple[UserMessage, list[bytes]]:
    """Return a message, and the images that it refers to. Raises Invalid."""
    urls, blobs = refer_to_images(images)
    message_id = message_id or new_message_id()
    message = UserMessage(text=text, message_id=message_id, images=urls, reopen=reopen)
    if problem := find_message_error(message):
        raise Invalid(problem)
    return message, blobs


def refer_to_images(images: Sequence[Image]) -> tuple[tuple[str, ...], list[bytes]]:
    """Return what a message has in the place of its images, and what has to be stored first.

    An http address stays as it is: the model's provider reads it. Raises Invalid.
    """
    if len(images) > MAX_IMAGES:
        raise Invalid(
            f"The message has {len(images)} images, and a model takes {MAX_IMAGES} at most.",
            "Send them in several messages.",
        )
    checked = list(map(check_image, images))
    blobs = [image for image in checked if isinstance(image, bytes)]
    return tuple(map(_refer_to, checked)), blobs


def _refer_to(image: str | bytes) -> str:
    return image if isinstance(image, str) else blob_key(sha256(image).hexdigest())


async def store_images(log: EventLog, blobs: Iterable[bytes]) -> None:
    """Store images as blobs of the conversation; those that it has already stay as they are."""
    for blob in blobs:
        await log.store_blob(blob)


def check_image(image: Image) -> str | bytes:
    """Return the bytes of the image, or its http address. Raises Invalid."""
    if isinstance(image, str) and image.startswith(("http://", "https://")):
        return image
    data, name = _read_image(image)
    if detect_media_type(data) is None:
        raise Invalid(
            f"{name} is no image that models take.", "Convert it to PNG, JPEG, GIF or WebP."
        )
    if len(data) > MAX_IMAGE_BYTES:
        raise Invalid(
            f"{name} has {len(data):,} bytes, and the limit for an image is {MAX_IMAGE_BYTES:,}.",
            "Make it smaller, or give the agent its file in the workspace.",
        )
    return data


def _read_image(image: Image) -> tuple[bytes, str]:
    """Return the bytes of the image, and how to name it."""
    if isinstance(image, bytes):
        return image, "The image"
    if isinstance(image, str) and image.startswith("data:"):
        encoded = DATA_URL.fullmatch(image)
        try:
            return base64.b64decode(encoded[1] if encoded else "-", validate=True), "The image"
        except ValueError as error:
            message = "The data of an image is no base64: write data:image/png;base64,..."
            raise Invalid(message) from error
    try:
        return Path(image).expanduser().read_bytes(), str(image)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise Invalid(f"The image {image} cannot be read ({reason}).") from error
