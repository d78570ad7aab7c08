"""Images too large for an event are blobs of their conversation."""

import base64
from pathlib import Path

from perdure.activities.support.stored_images import store_images
from perdure.events.content import ImageContent, Message, TextContent
from perdure.events.entry import make_entry
from perdure.events.messages import MessageEvent
from perdure.events.observations import MCPToolObservation
from perdure.events.tools import ObservationEvent
from perdure.storage.files import FileStore
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.images import has_stored_images, load_entry_images
from tests.builders import CONVERSATION, ORIGIN, TIMESTAMP, observation, user

PNG = b"\x89PNG\r\n\x1a\n" + bytes(60_000)
LARGE = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
SMALL = f"data:image/png;base64,{base64.b64encode(PNG[:100]).decode()}"
ODD = f"data:image/png;base64,{base64.b64encode(bytes(60_000)).decode()}"
BROKEN = f"data:image/png;base64,{'!' * 70_000}"


def open_log(folder: Path) -> EventLog:
    return EventLog(FileStore(folder), "anna", CONVERSATION)


def shows(*urls: str) -> MessageEvent:
    content = (TextContent(text="Look."), ImageContent(image_urls=urls))
    return user().model_copy(update={"llm_message": Message(role="user", content=content)})


async def test_a_large_image_of_a_message_is_stored_and_read_back(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    event = await store_images(log, shows(SMALL, LARGE, "https://example.org/a.png"))
    [_, part] = event.llm_message.content
    assert isinstance(part, ImageContent)
    small, key, address = part.image_urls
    assert (small, address) == (SMALL, "https://example.org/a.png")
    assert await log.read_blob(key) == PNG
    entry = make_entry(3, event, ORIGIN)
    assert len(entry.body) < 2_000
    assert has_stored_images(entry)
    assert (await load_entry_images(log, entry)).event == shows(
        SMALL, LARGE, "https://example.org/a.png"
    )


async def test_a_large_image_of_a_result_is_stored_and_read_back(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    result = MCPToolObservation(tool_name="draw", content=(ImageContent(image_urls=(LARGE,)),))
    drawn = observation("a", "draw").model_copy(update={"observation": result})
    entry = make_entry(3, await store_images(log, drawn), ORIGIN)
    assert len(entry.body) < 2_000
    assert (await load_entry_images(log, entry)).event == drawn


async def test_what_is_no_image_stays_as_it_is(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for url in (ODD, BROKEN):
        assert await store_images(log, shows(url)) == shows(url)
    text = ObservationEvent(
        timestamp=TIMESTAMP,
        action_id="a",
        tool_name="look",
        tool_call_id="c",
        observation=MCPToolObservation(tool_name="look"),
    )
    assert await store_images(log, text) == text
