"""Images that a log has as blobs, put in the place of the references to them."""

from perdure.events.content import Content, ImageContent
from perdure.events.entry import Entry
from perdure.events.event import AnyEvent
from perdure.events.images import is_stored_image, to_data_url
from perdure.events.messages import MessageEvent
from perdure.events.tools import ObservationEvent
from perdure.storage.errors import Altered, BadImage
from perdure.storage.log.readable import ReadableLog


def has_stored_images(entry: Entry) -> bool:
    """Tell whether a message or a result has images that are blobs of its conversation."""
    return any(
        is_stored_image(url)
        for part in _content_of(entry.event)
        if isinstance(part, ImageContent)
        for url in part.image_urls
    )


def _content_of(event: AnyEvent) -> tuple[Content, ...]:
    match event:
        case MessageEvent():
            return event.llm_message.content
        case ObservationEvent():
            return event.observation.content
        case _:
            return ()


async def load_entry_images(log: ReadableLog, entry: Entry) -> Entry:
    """Return the entry with its images; its bytes stay those that are stored. Raises BadImage."""
    event = entry.event
    assert isinstance(event, MessageEvent | ObservationEvent), "no other event has images"
    parts = [await _load_part(log, entry.seq, part) for part in _content_of(event)]
    name = "llm_message" if isinstance(event, MessageEvent) else "observation"
    holder = getattr(event, name).model_copy(update={"content": tuple(parts)})
    return entry.model_copy(update={"event": event.model_copy(update={name: holder})})


async def _load_part(log: ReadableLog, seq: int, part: Content) -> Content:
    if not isinstance(part, ImageContent):
        return part
    urls = [await _load_url(log, seq, url) for url in part.image_urls]
    return part.model_copy(update={"image_urls": tuple(urls)})


async def _load_url(log: ReadableLog, seq: int, url: str) -> str:
    try:
        return await load_image(log, url)
    except (Altered, LookupError) as error:
        raise BadImage(seq, log.prefix + url) from error


async def load_image(log: ReadableLog, url: str) -> str:
    """Return the URL, or the stored image as a data URL. Raises LookupError and Altered."""
    if not is_stored_image(url):
        return url
    if (data := await log.read_blob(url)) is None:
        raise LookupError(url)
    return to_data_url(data)
