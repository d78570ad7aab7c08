"""The images of a prompt, which its conversation has as blobs."""

from typing import Any

from perdure.agent.view.transcript import ChatMessage, Transcript
from perdure.events.images import is_stored_image
from perdure.models.model import ModelRefused
from perdure.storage.errors import Altered
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.images import load_image


async def load_prompt(log: EventLog, transcript: Transcript) -> list[ChatMessage]:
    """Return the messages of a prompt with their images; those without stored ones are not copied.

    Raises ModelRefused if an image is lost.
    """
    messages = transcript.messages()
    if not transcript.has_images:
        return messages
    return [
        await _load_message_images(log, message) if _has_stored_image(message) else message
        for message in messages
    ]


def _has_stored_image(message: ChatMessage) -> bool:
    content = message.get("content")
    return isinstance(content, list) and any(map(_refers_to_image, content))


async def _load_message_images(log: EventLog, message: ChatMessage) -> ChatMessage:
    content = message["content"]
    parts = [await _load_part(log, part) if _refers_to_image(part) else part for part in content]
    return {**message, "content": parts}


def _refers_to_image(part: dict[str, Any]) -> bool:
    return part.get("type") == "image_url" and is_stored_image(part["image_url"]["url"])


async def _load_part(log: EventLog, part: dict[str, Any]) -> dict[str, Any]:
    url = part["image_url"]["url"]
    try:
        return {**part, "image_url": {"url": await load_image(log, url)}}
    except (Altered, LookupError) as error:
        raise ModelRefused(
            "image_lost",
            f"An image of this conversation is lost or altered: restore {log.prefix}{url} from a "
            "backup, then resume; or fork the conversation before the message with it.",
        ) from error
