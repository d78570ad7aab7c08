"""Images of messages: stored beside the log, referred to in it, and shown in exports."""

from pathlib import Path

import pytest

from perdure.client.fork import fork
from perdure.client.ids import new_conversation_id
from perdure.client.images import refer_to_images
from perdure.errors import Invalid, NotFound
from perdure.events.content import ImageContent
from perdure.events.messages import MessageEvent
from perdure.exports.format import ExportMetadata, Part
from perdure.exports.openai_chat import OPENAI
from perdure.storage.errors import BadSlot, StillForked
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.exporting import export
from perdure.storage.log.purge import purge
from perdure.storage.log.verify import verify
from tests.harness import ConversationHarness, text_answer

PNG = b"\x89PNG\r\n\x1a\n"
GIF = b"GIF89a" + bytes(300_000)


async def export_text(log: EventLog) -> tuple[str, list[BadSlot]]:
    parts: list[Part] = []
    lost = await export(log, OPENAI, ExportMetadata(log.conversation_id), parts.append)
    return b"".join(part.body for part in parts).decode(), lost


async def find_faults(log: EventLog) -> list[str]:
    """Return the kinds of what is wrong; the state beside the log may not be saved yet."""
    return [finding.kind async for finding in verify(log) if finding.kind != "note"]


async def image_keys(log: EventLog) -> list[str]:
    events = [entry.event for entry in await log.read(0, await log.end())]
    contents = [event.llm_message.content for event in events if isinstance(event, MessageEvent)]
    parts = [part for content in contents for part in content if isinstance(part, ImageContent)]
    return [url for part in parts for url in part.image_urls]


async def test_images_larger_than_a_signal_are_stored_exported_verified_and_forked(
    harness: ConversationHarness, tmp_path: Path
) -> None:
    path = tmp_path / "moving.png"
    path.write_bytes(GIF)
    async with harness.worker():
        spec = harness.spec(text_answer("I see."), text_answer("Again."))
        talk = await harness.client.start("Look:", spec, images=[PNG, path, "https://x.org/a.png"])
        await talk.wait_for_turn()
        await talk.send("And again:", images=["data:image/png;base64,iVBORw0KGgo="])
        await talk.result()
    first, second, address, third = await image_keys(talk.log)
    assert (await talk.log.read_blob(first), await talk.log.read_blob(second)) == (PNG, GIF)
    assert (third, address) == (first, "https://x.org/a.png")
    assert await find_faults(talk.log) == []
    text, lost = await export_text(talk.log)
    assert (text.count("data:image/png;base64,iVBORw0KGgo="), lost) == (2, [])
    assert "data:image/gif;base64,R0lGODlh" in text
    forked = (await fork(harness.client, talk.id)).conversation.log
    assert await export_text(forked) == (text, [])
    with pytest.raises(StillForked):
        await purge(talk.log)
    await purge(forked)
    await purge(talk.log)
    assert await talk.log.store.list(talk.log.prefix) == []


async def test_a_lost_image_is_named_by_an_export_and_by_verify(
    harness: ConversationHarness,
) -> None:
    async with harness.worker():
        talk = await harness.client.start("Look:", harness.spec(text_answer("So?")), images=[PNG])
        await talk.wait_for_turn()
    [key] = await image_keys(talk.log)
    await talk.log.store.delete(talk.log.prefix + key)
    text, [lost] = await export_text(talk.log)
    assert (key in text, key in str(lost)) == (True, True)
    assert await find_faults(talk.log) == ["blob"]


async def test_nothing_is_stored_for_a_conversation_that_does_not_exist(
    harness: ConversationHarness,
) -> None:
    talk = harness.client.conversation(new_conversation_id())
    with pytest.raises(NotFound):
        await talk.send("Look:", images=[PNG])
    assert await talk.log.store.list(talk.log.prefix) == []


def test_more_images_than_a_model_takes_are_refused() -> None:
    urls, blobs = refer_to_images([PNG] * 20)
    assert (len(set(urls)), len(blobs)) == (1, 20)
    with pytest.raises(Invalid, match="has 21 images, and a model takes 20 at most"):
        refer_to_images([PNG] * 21)
