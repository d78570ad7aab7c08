"""A step reads only new events, and the cache of transcripts is bounded."""

from pathlib import Path

import pytest

from perdure.activities.support.transcript_cache import TranscriptCache
from perdure.agent.spec import RecentCondenser
from perdure.client.ids import new_conversation_id
from perdure.events.entry import Origin
from perdure.storage.errors import Missing
from perdure.storage.files import FileStore
from perdure.storage.keys import conversation_prefix, event_key
from perdure.storage.log.event_log import EventLog
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


async def write_messages(store: CountingStore, *texts: str) -> EventLog:
    log = EventLog(store, "local", new_conversation_id())
    await log.append([user(text) for text in texts], base=0, origin=ORIGIN)
    return log


def texts_of(messages: list[dict[str, object]]) -> list[object]:
    return [message["content"] for message in messages]


async def test_only_new_entries_are_read(store: CountingStore) -> None:
    transcripts, log = TranscriptCache(1_000_000), await write_messages(store, "a", "b", "c")
    assert texts_of((await transcripts.load(log, 2)).messages()) == ["a", "b"]
    before = store.reads
    assert texts_of((await transcripts.load(log, 3)).messages()) == ["a", "b", "c"]
    assert store.reads == before + 1


async def test_an_older_step_gets_no_later_events(
    store: CountingStore,
) -> None:
    transcripts, log = TranscriptCache(1_000_000), await write_messages(store, "a", "b", "c")
    await transcripts.load(log, 3)
    assert texts_of((await transcripts.load(log, 1)).messages()) == ["a"]
    assert texts_of((await transcripts.load(log, 3)).messages()) == ["a", "b", "c"]


async def test_the_oldest_transcripts_are_evicted_beyond_the_limit(store: CountingStore) -> None:
    first, second = await write_messages(store, "x" * 500), await write_messages(store, "y" * 500)
    transcripts = TranscriptCache(1000)
    await transcripts.load(first, 1)
    await transcripts.load(second, 1)
    before = store.reads
    assert texts_of((await transcripts.load(second, 1)).messages()) == ["y" * 500]
    assert store.reads == before
    assert texts_of((await transcripts.load(first, 1)).messages()) == ["x" * 500]
    assert store.reads == before + 1


async def test_the_limit_is_one_of_memory(store: CountingStore) -> None:
    """Many small events take far more of it than their bytes."""
    first, second = (
        await write_messages(store, *"abcdefgh"),
        await write_messages(store, *"abcdefgh"),
    )
    transcripts = TranscriptCache(40_000)
    await transcripts.load(first, 8)
    await transcripts.load(second, 8)
    before = store.reads
    await transcripts.load(first, 8)
    assert store.reads == before + 8


async def test_an_ended_conversation_is_evicted(store: CountingStore) -> None:
    transcripts, log = TranscriptCache(1_000_000), await write_messages(store, *"abc")
    await transcripts.load(log, 3)
    transcripts.evict(log)
    before = store.reads
    assert texts_of((await transcripts.load(log, 3)).messages()) == ["a", "b", "c"]
    assert store.reads == before + 3


async def test_forgotten_events_are_not_read(store: CountingStore) -> None:
    transcripts, log = TranscriptCache(1_000_000), await write_messages(store, *"abcdefgh")
    before = store.reads
    assert texts_of((await transcripts.load(log, 8, ((1, 3), (5, 6)))).messages()) == [
        "a",
        "e",
        "h",
    ]
    assert store.reads == before + 3


async def test_a_transcript_is_rebuilt_once_more_events_are_forgotten(store: CountingStore) -> None:
    transcripts, log = TranscriptCache(1_000_000), await write_messages(store, *"abcdefgh")
    await transcripts.load(log, 6, ((1, 2),))
    before = store.reads
    assert texts_of((await transcripts.load(log, 8, ((1, 2),))).messages()) == ["a", *"defgh"]
    assert store.reads == before + 2
    assert texts_of((await transcripts.load(log, 8, ((1, 5),))).messages()) == ["a", "g", "h"]
    assert store.reads == before + 2 + 3


async def test_a_step_reads_the_same_at_any_length(store: CountingStore) -> None:
    long, short = (
        await write_messages(store, *map(str, range(60))),
        await write_messages(store, *map(str, range(20))),
    )
    before = store.reads
    messages = (await TranscriptCache(1_000_000).load(short, 20, ((2, 9),))).messages()
    few = store.reads - before
    assert len((await TranscriptCache(1_000_000).load(long, 60, ((2, 49),))).messages()) == len(
        messages
    )
    assert store.reads - before == 2 * few


async def test_a_condenser_shows_less_of_the_same_transcript(store: CountingStore) -> None:
    transcripts, log = TranscriptCache(1_000_000), await write_messages(store, *"abcd")
    recent, before = RecentCondenser(keep_first=1, max_events=2), store.reads
    assert texts_of((await transcripts.load(log, 4, (), recent)).messages()) == ["a", "d"]
    assert texts_of((await transcripts.load(log, 4)).messages()) == ["a", "b", "c", "d"]
    assert store.reads == before + 4


async def test_a_missing_slot_is_an_error(store: CountingStore, tmp_path: Path) -> None:
    log = await write_messages(store, "a", "b", "c")
    key = conversation_prefix("local", log.conversation_id) + event_key(log.conversation_id, 1)
    (tmp_path / key).unlink()
    with pytest.raises(Missing):
        await TranscriptCache(1_000_000).load(log, 3)
    assert texts_of((await TranscriptCache(1_000_000).load(log, 3, ((1, 1),))).messages()) == [
        "a",
        "c",
    ]
