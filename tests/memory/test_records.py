"""Memories as objects of the store."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from perdure.api.memories import Memory, MemoryFilter, PutMemory
from perdure.memory.records import Author, MemoryRecords, Tombstone, Version
from perdure.storage.errors import Altered
from perdure.storage.files import FileStore
from tests.storage.memory import MemoryStore

COLOUR = PutMemory(text="Her colour is green.", key="colour")


def records(store: MemoryStore | None = None, user_id: str = "anna") -> MemoryRecords:
    return MemoryRecords(store or MemoryStore(), user_id)


async def test_a_memory_is_one_object_under_its_user_and_reads_as_it_was_put() -> None:
    store = MemoryStore()
    draft = PutMemory(text="It rains.", app="weather", tags=("a",), metadata={"n": [1, None]})
    put, is_new = await records(store).put(draft, Author("agent", "c1"))
    assert put is not None
    assert is_new
    assert [key for key in store.objects if "/memory/" in key] == [
        f"users/anna/memory/{put.id}.000001.json"
    ]
    read = await records(store).get(put.id)
    assert read == put
    assert (read.text, read.app, read.tags) == ("It rains.", "weather", ("a",))
    assert read.metadata == {"n": [1, None]}
    assert (read.source, read.conversation_id, read.version) == ("agent", "c1", 1)
    assert await records(store, "ben").get(put.id) is None


async def test_a_put_of_the_same_content_and_key_changes_nothing() -> None:
    store = MemoryStore()
    first, _ = await records(store).put(COLOUR)
    before = dict(store.objects)
    assert await records(store).put(COLOUR) == (first, False)
    assert store.objects == before


async def test_another_text_of_the_same_key_is_a_version_under_the_same_id() -> None:
    mine = records()
    first, _ = await mine.put(COLOUR)
    second, is_new = await mine.put(PutMemory(text="It is blue.", key="colour"))
    third, _ = await mine.put(COLOUR)
    assert first is not None
    assert second is not None
    assert third is not None
    assert is_new
    assert first.id == second.id == third.id
    assert [first.version, second.version, third.version] == [1, 2, 3]
    assert await mine.get(first.id) == third
    other, _ = await mine.put(PutMemory(text="x", key="colour", app="other"))
    assert other is not None
    assert other.id != first.id


async def test_a_removed_memory_leaves_no_text_behind_and_stays_away_from_an_ingestion() -> None:
    store = MemoryStore()
    mine = records(store)
    first, _ = await mine.put(COLOUR)
    await mine.put(PutMemory(text="It is blue.", key="colour"))
    assert first is not None
    assert await mine.remove(first.id)
    assert not await mine.remove(first.id)
    assert await mine.get(first.id) is None
    assert not any(b"green" in body or b"blue" in body for body in store.objects.values())
    assert await mine.put(COLOUR, revive=False) == (None, False)
    assert await mine.get(first.id) is None
    again, is_new = await mine.put(COLOUR)
    assert again is not None
    assert (again.id, again.version, is_new) == (first.id, 4, True)


async def test_writers_of_the_same_key_at_once_lose_no_put(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    drafts = [PutMemory(text=f"text {nth}", key="k") for nth in range(12)]
    put = await asyncio.gather(*(MemoryRecords(store, "anna").put(each) for each in drafts))
    assert sorted(it.version for it, _ in put if it) == list(range(1, 13))
    newest = await MemoryRecords(store, "anna").get(put[0][0].id)  # type: ignore[union-attr]
    assert newest is not None
    assert newest.version == 12
    await store.close()


async def test_every_version_is_marked_before_it_is_written_until_the_index_has_it() -> None:
    mine = records()
    first, _ = await mine.put(COLOUR)
    await mine.put(PutMemory(text="It is blue.", key="colour"))
    assert first is not None
    old, new = Version(first.id, 1), Version(first.id, 2)
    assert await mine.list_changes() == [old, new]
    await mine.settle([old, new])
    assert await mine.list_changes() == []
    assert await mine.read(old) is None
    assert await mine.get(first.id) is not None


async def test_a_text_that_comes_behind_the_removal_is_deleted() -> None:
    """A store repeats a put whose answer was lost: another process removed the memory meanwhile."""
    store = MemoryStore()
    late, other = LateRecords(store, "anna"), MemoryRecords(store, "anna")
    late.before_version = other
    put, _ = await late.put(COLOUR)
    assert put is not None
    assert await other.get(put.id) is None
    assert not [body for body in store.objects.values() if b"green" in body]


class LateRecords(MemoryRecords):
    """Records of a process that another one is faster than."""

    before_version: MemoryRecords

    async def _create(self, record: Memory | Tombstone, writes: Sequence[str]) -> bool:
        await self.before_version.put(COLOUR)
        await self.before_version.remove(record.id)
        return await super()._create(record, writes)


async def test_an_altered_memory_is_named(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    mine = MemoryRecords(store, "anna")
    put, _ = await mine.put(COLOUR)
    assert put is not None
    path = tmp_path / f"users/anna/memory/{put.id}.000001.json"
    for body in ("{", path.read_text().replace('"version":1', '"version":2')):
        path.write_text(body)
        with pytest.raises(Altered, match=put.id):
            await mine.get(put.id)
    await store.close()


async def test_memories_are_listed_by_id_from_any_of_them_on() -> None:
    mine = records()
    ids = [(await mine.put(PutMemory(text=f"{nth}")))[0] for nth in range(5)]
    await mine.put(COLOUR)
    await mine.put(PutMemory(text="blue", key="colour"))
    listed = [version async for version in mine.list_newest()]
    assert [it.id for it in listed] == sorted(it.id for it in listed)
    assert len(listed) == 6
    assert {it.number for it in listed} == {1, 2}
    behind = [version async for version in mine.list_newest(listed[2].id)]
    assert behind == listed[3:]
    assert all(it is not None and Version(it.id, 1) in listed for it in ids)


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"text": ""}, "at least 1 character"),
        ({"text": " \n"}, "may not be empty"),
        ({"text": "a" * 65_537}, "65,536 bytes at most, and this one 65,537"),
        ({"text": "é" * 40_000}, "and this one 80,000"),
        ({"text": "\ud800"}, "unable to parse raw data as a unicode string"),
        ({"text": "x", "app": "\ud800"}, "unicode string"),
        ({"text": "x", "tags": ["\ud800"]}, "unicode string"),
        ({"text": "x", "metadata": {"n": "a" * 9000}}, "8,192 is the most"),
        ({"text": "x", "metadata": {"n": "\ud800"}}, "half a surrogate pair"),
        ({"text": "x", "tags": ["a"] * 33}, "at most 32"),
        ({"text": "x", "key": ""}, "at least 1 character"),
        ({"text": "x", "nonsense": 1}, "not permitted"),
    ],
)
def test_a_memory_that_is_not_right_is_refused_in_a_sentence(
    fields: dict[str, object], fault: str
) -> None:
    with pytest.raises(ValidationError, match=fault):
        PutMemory.model_validate(fields)


@pytest.mark.parametrize("user_id", ["", "..", "a/b", "a\0b"])
def test_no_user_id_leaves_its_folder(user_id: str) -> None:
    with pytest.raises(ValueError, match="user id"):
        records(user_id=user_id)


@pytest.mark.parametrize("memory_id", ["", "x", "../ben", "0" * 36])
async def test_no_memory_id_leaves_its_folder(memory_id: str) -> None:
    with pytest.raises(ValueError, match="id of a memory"):
        await records().get(memory_id)


words = st.sampled_from(["", "a", "b"])
memories = st.builds(
    Memory,
    id=st.just("1"),
    text=st.just("x"),
    app=words,
    tags=st.lists(st.sampled_from("ab")).map(tuple),
    source=st.sampled_from(["user", "agent", "conversation"]),
    conversation_id=st.none() | words,
    created=st.just("2026-03-01T09:00:00.000000"),
)


@given(memories, words, st.sampled_from("ab"))
def test_a_filter_accepts_what_fits_all_that_it_says(memory: Memory, app: str, tag: str) -> None:
    assert MemoryFilter().accepts(memory)
    assert MemoryFilter(app=app).accepts(memory) == (memory.app == app)
    assert MemoryFilter(tags=(tag,)).accepts(memory) == (tag in memory.tags)
    both = MemoryFilter(app=app, tags=(tag, "c"), source="agent")
    fits = memory.app == app and tag in memory.tags and memory.source == "agent"
    assert both.accepts(memory) == fits


async def test_a_call_that_goes_on_late_takes_back_nothing_that_was_put_or_removed_since() -> None:
    store = MemoryStore()
    mine, blue = records(store), PutMemory(text="It is blue.", key="colour")
    first, _ = await mine.put(COLOUR, write_id="call-1")
    await mine.put(blue, write_id="call-2")
    third, _ = await mine.put(PutMemory(text="It is red.", key="colour"))
    assert first is not None
    for late, draft in (("call-1", COLOUR), ("call-2", blue)):
        assert await mine.put(draft, write_id=late) == (third, False)
    assert (await mine.put(blue, write_id="call-3"))[1]
    await mine.remove(first.id)
    assert await mine.put(COLOUR, write_id="call-1") == (None, False)
    assert await mine.get(first.id) is None
    revived, _ = await mine.put(COLOUR, write_id="call-4")
    assert await mine.get(first.id) == revived
