"""A step reads what is new, and a worker keeps only so much."""

from pathlib import Path

import pytest

from activities.transcripts import Transcripts
from agent.spec import RecentCondenser
from client.ids import new_conversation_id
from events.entry import Origin
from storage.errors import Missing
from storage.files import FileStore
from storage.keys import conversation_prefix, event_key
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


async def test_the_limit_is_one_of_memory(store: CountingStore) -> None:
    """Many small events take far more of it than their bytes."""
    first, second = await talk(store, *"abcdefgh"), await talk(store, *"abcdefgh")
    transcripts = Transcripts(40_000)
    await transcripts.of(first, 8)
    await transcripts.of(second, 8)
    before = store.reads
    await transcripts.of(first, 8)
    assert store.reads == before + 8


async def test_a_conversation_that_has_ended_makes_room(store: CountingStore) -> None:
    transcripts, log = Transcripts(1_000_000), await talk(store, *"abc")
    await transcripts.of(log, 3)
    transcripts.forget(log.conversation_id)
    before = store.reads
    assert said((await transcripts.of(log, 3)).messages()) == ["a", "b", "c"]
    assert store.reads == before + 3


async def test_what_is_forgotten_is_not_read(store: CountingStore) -> None:
    transcripts, log = Transcripts(1_000_000), await talk(store, *"abcdefgh")
    before = store.reads
    assert said((await transcripts.of(log, 8, ((1, 3), (5, 6)))).messages()) == ["a", "e", "h"]
    assert store.reads == before + 3


async def test_a_transcript_is_made_anew_once_more_is_forgotten(store: CountingStore) -> None:
    transcripts, log = Transcripts(1_000_000), await talk(store, *"abcdefgh")
    await transcripts.of(log, 6, ((1, 2),))
    before = store.reads
    assert said((await transcripts.of(log, 8, ((1, 2),))).messages()) == ["a", *"defgh"]
    assert store.reads == before + 2
    assert said((await transcripts.of(log, 8, ((1, 5),))).messages()) == ["a", "g", "h"]
    assert store.reads == before + 2 + 3


async def test_a_step_reads_the_same_at_any_length(store: CountingStore) -> None:
    long, short = await talk(store, *map(str, range(60))), await talk(store, *map(str, range(20)))
    before = store.reads
    shown = (await Transcripts(1_000_000).of(short, 20, ((2, 9),))).messages()
    few = store.reads - before
    assert len((await Transcripts(1_000_000).of(long, 60, ((2, 49),))).messages()) == len(shown)
    assert store.reads - before == 2 * few


async def test_a_condenser_shows_less_of_the_same_transcript(store: CountingStore) -> None:
    transcripts, log = Transcripts(1_000_000), await talk(store, *"abcd")
    recent, before = RecentCondenser(keep_first=1, max_events=2), store.reads
    assert said((await transcripts.of(log, 4, (), recent)).messages()) == ["a", "d"]
    assert said((await transcripts.of(log, 4)).messages()) == ["a", "b", "c", "d"]
    assert store.reads == before + 4


async def test_a_slot_that_is_gone_is_said_so(store: CountingStore, tmp_path: Path) -> None:
    log = await talk(store, "a", "b", "c")
    key = conversation_prefix("local", log.conversation_id) + event_key(log.conversation_id, 1)
    (tmp_path / key).unlink()
    with pytest.raises(Missing):
        await Transcripts(1_000_000).of(log, 3)
    assert said((await Transcripts(1_000_000).of(log, 3, ((1, 1),))).messages()) == ["a", "c"]
