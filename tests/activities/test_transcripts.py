"""A step reads what is new, and a worker keeps only so much."""

from pathlib import Path

import pytest

from activities.transcripts import Transcripts
from client.ids import new_conversation_id
from events.entry import Origin
from storage.files import FileStore
from storage.log import EventLog
from tests.builders import user

ORIGIN = Origin(run="run", activity="1")


class CountingStore(FileStore):
    """A store that tells how often it was read."""

    reads = 0

    async def read(self, key: str) -> bytes | None:
        self.reads += 1
        return await super().read(key)


@pytest.fixture
def store(tmp_path: Path) -> CountingStore:
    return CountingStore(tmp_path)


async def talk(store: CountingStore, *texts: str) -> EventLog:
    log = EventLog(store, "local", new_conversation_id())
    await log.append([user(text) for text in texts], base=0, origin=ORIGIN)
    return log


def said(messages: list[dict[str, object]]) -> list[object]:
    return [message["content"] for message in messages]


async def test_only_what_is_new_is_read(store: CountingStore) -> None:
    transcripts, log = Transcripts(1_000_000), await talk(store, "a", "b", "c")
    assert said((await transcripts.of(log, 2)).messages()) == ["a", "b"]
    before = store.reads
    assert said((await transcripts.of(log, 3)).messages()) == ["a", "b", "c"]
    assert store.reads == before + 1


async def test_a_step_that_is_behind_is_shown_no_more_than_it_asked_for(
    store: CountingStore,
) -> None:
    transcripts, log = Transcripts(1_000_000), await talk(store, "a", "b", "c")
    await transcripts.of(log, 3)
    assert said((await transcripts.of(log, 1)).messages()) == ["a"]
    assert said((await transcripts.of(log, 3)).messages()) == ["a", "b", "c"]


async def test_the_oldest_are_forgotten_beyond_the_limit(store: CountingStore) -> None:
    first, second = await talk(store, "x" * 500), await talk(store, "y" * 500)
    transcripts = Transcripts(1000)
    await transcripts.of(first, 1)
    await transcripts.of(second, 1)
    before = store.reads
    assert said((await transcripts.of(second, 1)).messages()) == ["y" * 500]
    assert store.reads == before
    assert said((await transcripts.of(first, 1)).messages()) == ["x" * 500]
    assert store.reads == before + 1
