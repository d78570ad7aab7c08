"""Every event of a shared log ever written can be read. The golden files are never edited."""

import json
from pathlib import Path

import pytest

from perdure.events.discussion import DiscussionEvent
from perdure.storage.discussions.shared_log import SharedLog
from tests.storage.memory import MemoryStore

GOLDEN = sorted((Path(__file__).parents[2] / "golden" / "discussions").glob("*.json"))

PREFIX = "users/local/discussions/session-123/events/"


def stored(path: Path) -> bytes:
    return path.read_bytes().removesuffix(b"\n")


def test_the_files_are_one_log() -> None:
    assert [path.name for path in GOLDEN] == ["000001.json", "000002.json", "000003.json"]


async def test_a_stored_log_is_read() -> None:
    store = MemoryStore()
    for path in GOLDEN:
        await store.create(PREFIX + path.name, stored(path))
    log = SharedLog(store, "local", "session-123")
    assert (await log.refresh()).end == 3
    events = await log.read(range(1, 4))
    assert [event.type for event in events] == ["SYSTEM", "SPEECH", "SUMMARY"]
    assert events[1].meta is not None
    assert (events[1].meta.reply_to, events[1].meta.tokens) == ("evt-1", 128)


@pytest.mark.parametrize("number", [1, 2, 3])
async def test_an_event_is_written_byte_for_byte_as_it_was(number: int) -> None:
    store = MemoryStore()
    log = SharedLog(store, "local", "session-123")
    for path in GOLDEN[:number]:
        fields = json.loads(stored(path))
        fields.pop("origin")
        await log.append(DiscussionEvent.model_validate(fields))
    assert await store.read(f"{PREFIX}{number:06d}.json") == stored(GOLDEN[number - 1])
