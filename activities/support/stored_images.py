"""Images too large for an event, which are stored as blobs beside the log before it is written."""

import base64
import re
from typing import TypeVar

from perdure.events.base import EventBase
from perdure.events.content import Content, ImageContent
from perdure.events.images import detect_media_type
from perdure.events.messages import MessageEvent
from perdure.events.tools import ObservationEvent
from perdure.storage.log.event_log import EventLog

MAX_INLINE_CHARS = 64 * 1024
"""Characters of an image that an event holds itself, as a data URL."""

AnEvent = TypeVar("AnEvent", bound=EventBase)

_DATA_URL = re.compile(r"data:image/[a-z0-9.+-]+;base64,", re.IGNORECASE)


async def store_images(log: EventLog, event: AnEvent) -> AnEvent:
    """Return the event with references in place of its large images, which are stored.

    What is no image of a kind that models take stays as it is.
    """
    match event:
        case MessageEvent() if any(map(_has_large, event.llm_message.content)):
            content = await _store_all(log, event.llm_message.content)
            message = event.llm_message.model_copy(update={"content": content})
            return event.model_copy(update={"llm_message": message})
        case ObservationEvent() if any(map(_has_large, event.observation.content)):
            content = await _store_all(log, event.observation.content)
            observation = event.observation.model_copy(update={"content": content})
            return event.model_copy(update={"observation": observation})
        case _:
            return event


async def _store_all(log: EventLog, content: tuple[Content, ...]) -> tuple[Content, ...]:
    return tuple([await _store_part(log, part) for part in content])


async def _store_part(log: EventLog, part: Content) -> Content:
    if not isinstance(part, ImageContent):
        return part
    urls = [await _store_url(log, url) for url in part.image_urls]
    return part.model_copy(update={"image_urls": tuple(urls)})


def _has_large(part: Content) -> bool:
    return isinstance(part, ImageContent) and any(map(_is_large, part.image_urls))


def _is_large(url: str) -> bool:
    return len(url) > MAX_INLINE_CHARS and _DATA_URL.match(url) is not None


async def _store_url(log: EventLog, url: str) -> str:
    if not _is_large(url):
        return url
    try:
        data = base64.b64decode(url.partition(",")[2], validate=True)
    except ValueError:  # a tool's own, which its provider may refuse
        return url
    return await log.store_blob(data) if detect_media_type(data) else url
