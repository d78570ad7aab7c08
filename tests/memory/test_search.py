"""Searches of memories, and the index that follows them, in LanceDB itself."""

import asyncio
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from perdure.api.memories import FoundMemory, MemoryFilter, PutMemory
from perdure.embedded.seaweed import Seaweed
from perdure.errors import Invalid, NotFound, Unreachable
from perdure.memory.records import Version
from perdure.memory.service import MemoryService
from perdure.storage.errors import StoreUnavailable
from perdure.storage.files import FileStore
from perdure.storage.s3 import S3Store
from perdure.storage.store import S3Access, Store
from tests.memory.embedding import LetterEmbedder
from tests.storage.faulty import FaultyStore
from tests.storage.memory import MemoryStore

pytestmark = pytest.mark.long  # importing LanceDB takes more than a second


def texts(found: list[FoundMemory]) -> list[str]:
    return [it.memory.text for it in found]


async def test_a_search_finds_what_was_put_before_it_and_nothing_that_was_removed(
    store: FileStore,
) -> None:
    anna = MemoryService(store).of_user("anna")
    assert await anna.search("colour") == []
    green = await anna.put(PutMemory(text="Her favourite colour is green.", key="colour"))
    rain = await anna.put(PutMemory(text="It rained in June."))
    assert texts(await anna.search("favourite colours")) == [green.text]
    blue = await anna.put(PutMemory(text="Her favourite colour is blue.", key="colour"))
    assert texts(await anna.search("colour")) == [blue.text]
    assert texts(await anna.search("green")) == []
    await anna.remove(blue.id)
    assert await anna.search("colour") == []
    assert texts(await anna.search("rained")) == [rain.text]
    with pytest.raises(NotFound, match=blue.id):
        await anna.get(blue.id)
    with pytest.raises(NotFound, match=blue.id):
        await anna.remove(blue.id)


async def test_a_filter_holds_for_each_result(store: FileStore) -> None:
    anna = MemoryService(store).of_user("anna")
    for app in ("", "shop", "it's"):
        for tag in ("old", "o'hara", "new"):
            await anna.put(PutMemory(text=f"A shoe {app} {tag}", app=app, tags=(tag, "all")))
    for only in (
        MemoryFilter(app="shop"),
        MemoryFilter(app="it's", tags=("o'hara",)),
        MemoryFilter(tags=("old", "new")),
        MemoryFilter(source="user"),
    ):
        found = await anna.search("shoe", 100, only)
        listed = await anna.list_memories(100, "", only)
        assert {it.memory.id for it in found} == {it.id for it in listed}
        assert found
        assert all(only.accepts(it.memory) for it in found)
    assert await anna.search("shoe", 10, MemoryFilter(source="agent")) == []
    assert await anna.search("shoe", 10, MemoryFilter(app="' OR 1=1 --")) == []


@pytest.mark.parametrize("query", ["", "the", '"', "))((", "a AND (", "\0", "🎉", "x" * 8000])
async def test_any_query_has_an_answer(store: FileStore, query: str) -> None:
    anna = MemoryService(store).of_user("anna")
    await anna.put(PutMemory(text="Something else."))
    assert await anna.search(query) == []


async def test_no_search_of_fifty_users_finds_what_is_another_user_s(store: FileStore) -> None:
    service, dice = MemoryService(store), random.Random(0)
    names = [f"user{nth}@example.org" for nth in range(50)]
    words = [f"word{nth}" for nth in range(30)]
    for name in names:
        for _ in range(4):
            text = " ".join(dice.choices(words, k=10))
            await service.of_user(name).put(PutMemory(text=text, metadata={"user": name}))
    results = 0
    for _ in range(300):
        name = dice.choice(names)
        for found in await service.of_user(name).search(" ".join(dice.choices(words, k=3))):
            assert found.memory.metadata["user"] == name
            results += 1
    assert results > 300


async def test_an_index_that_is_gone_is_made_anew_by_the_next_search(
    store: FileStore, tmp_path: Path
) -> None:
    anna = MemoryService(store).of_user("anna")
    for nth in range(20):
        await anna.put(PutMemory(text=f"Number{nth} of the shoes."))
    before = texts(await anna.search("number7 shoes"))
    assert len(before) == 10
    shutil.rmtree(tmp_path / "store/users/anna/memory-index")
    assert set(texts(await anna.search("number7"))) == {"Number7 of the shoes."}
    shutil.rmtree(tmp_path / "store/users/anna/memory-index")
    other_process = MemoryService(store).of_user("anna")
    assert texts(await other_process.search("number7")) == ["Number7 of the shoes."]
    assert await other_process.reindex() == 20
    assert await other_process.index.count() == 20


async def test_a_removal_that_is_late_leaves_what_was_put_since_in_the_index(
    store: FileStore,
) -> None:
    anna = MemoryService(store).of_user("anna")
    green = await anna.put(PutMemory(text="It is green.", key="colour"))
    await anna.search("green")
    await anna.remove(green.id)
    blue = await anna.put(PutMemory(text="It is blue.", key="colour"))
    assert texts(await anna.search("blue")) == [blue.text]
    await anna.index.update([], [Version(green.id, green.version + 1)])
    assert texts(await anna.search("blue")) == [blue.text]


async def test_an_index_that_another_process_has_made_since_is_not_replaced(
    store: FileStore,
) -> None:
    anna = MemoryService(store).of_user("anna")
    await anna.put(PutMemory(text="It is green."))
    place = await anna.index.read_place()
    assert await anna.reindex() == 1
    assert not await anna.index.rebuild([], place)
    assert texts(await anna.search("green")) == ["It is green."]


async def test_a_change_is_marked_as_long_as_the_index_is_made_anew(store: FileStore) -> None:
    anna = MemoryService(store).of_user("anna")
    await anna.put(PutMemory(text="It is green."))
    await anna.search("green")
    killed = await anna.records.note_rebuild()
    blue = await anna.put(PutMemory(text="It is blue."))
    assert texts(await anna.search("blue")) == [blue.text]
    assert await anna.records.list_changes() == [Version(blue.id, 1)]
    assert await anna.reindex() == 2
    assert await anna.records.list_changes() == []
    assert killed not in await anna.records.list_rebuilds()


async def test_processes_that_search_at_once_find_all(store: FileStore) -> None:
    processes = [MemoryService(store).of_user("anna") for _ in range(4)]
    for nth in range(40):
        await processes[nth % 4].put(PutMemory(text=f"Shoe{nth}", key=f"k{nth}"))
    found = await asyncio.gather(*(each.search(f"shoe{nth}") for nth, each in enumerate(processes)))
    assert [texts(it) for it in found] == [["Shoe0"], ["Shoe1"], ["Shoe2"], ["Shoe3"]]
    for nth in range(40):
        await processes[nth % 4].put(PutMemory(text=f"Boot{nth}", key=f"k{nth}"))
    found = await asyncio.gather(*(each.search(f"boot{nth}") for nth, each in enumerate(processes)))
    assert [texts(it) for it in found] == [["Boot0"], ["Boot1"], ["Boot2"], ["Boot3"]]
    assert [await each.search("shoe0") for each in processes] == [[], [], [], []]


@pytest.mark.parametrize("lost", range(8))
async def test_a_put_that_a_fault_stopped_is_found_wholly_or_not_at_all(lost: int) -> None:
    """The store fails at one of the writes; whoever puts again has one memory, which is found."""
    held = MemoryStore()
    calls = iter(range(100))

    def fate(choices: int) -> int:
        return (2 if lost % 2 else 1) if choices == 4 and next(calls) == lost // 2 else 0

    service = MemoryService(FaultyStore(held, fate), index_url=None)
    draft = PutMemory(text="A shoe.", key="shoe")
    memory = service.of_user("anna")
    for _ in range(3):
        try:
            await memory.put(draft)
        except StoreUnavailable:
            continue
        break
    stored = [key for key in held.objects if "/memory/" in key]
    assert len(stored) == 1
    changes = await memory.records.list_changes()
    assert [f"users/anna/memory/{it.name}.json" for it in changes] == stored


async def test_texts_are_found_by_their_vectors_too(store: FileStore) -> None:
    letters = LetterEmbedder()
    anna = MemoryService(store, letters).of_user("anna")
    await anna.put(PutMemory(text="abcabc"))
    await anna.put(PutMemory(text="xyz zyx"))
    assert texts(await anna.search("cab", 1)) == ["abcabc"]
    embedded = len(letters.texts)
    await anna.search("zxy")
    assert len(letters.texts) == embedded + 1, "what is in the index is not embedded again"
    without = MemoryService(store).of_user("anna")
    assert texts(await without.search("abcabc")) == ["abcabc"]
    assert await without.search("cab") == []
    await without.put(PutMemory(text="A shoe."))
    assert texts(await without.search("shoe")) == ["A shoe."]
    assert "A shoe." in texts(await anna.search("shoe"))


async def test_another_embedding_model_makes_the_index_anew(store: FileStore) -> None:
    first = MemoryService(store, LetterEmbedder()).of_user("anna")
    await first.put(PutMemory(text="abcabc"))
    assert texts(await first.search("cab")) == ["abcabc"]
    other = LetterEmbedder("other", size=13)
    second = MemoryService(store, other).of_user("anna")
    assert texts(await second.search("cab")) == ["abcabc"]
    assert "abcabc" in other.texts
    plain = MemoryService(store).of_user("ben")
    await plain.put(PutMemory(text="abcabc"))
    await plain.search("abcabc")
    assert texts(await MemoryService(store, other).of_user("ben").search("cab")) == ["abcabc"]


async def test_a_model_that_does_not_answer_loses_nothing(store: FileStore) -> None:
    letters = LetterEmbedder()
    anna = MemoryService(store, letters).of_user("anna")
    letters.error = Unreachable("The embedding model does not answer.")
    await anna.put(PutMemory(text="abcabc"))
    with pytest.raises(Unreachable, match="does not answer"):
        await anna.search("cab")
    letters.error = None
    assert texts(await anna.search("cab")) == ["abcabc"]


async def test_a_store_of_another_kind_needs_a_place_for_its_index(tmp_path: Path) -> None:
    held = MemoryStore()
    with pytest.raises(Invalid, match="store of this kind") as refused:
        await MemoryService(held).of_user("anna").search("x")
    assert "file:///folder" in refused.value.hint
    with_place = MemoryService(held, index_url=tmp_path.as_uri()).of_user("anna")
    await with_place.put(PutMemory(text="A shoe."))
    assert texts(await with_place.search("shoe")) == ["A shoe."]
    with pytest.raises(Invalid, match="not the URL of a store"):
        await MemoryService(held, index_url="nowhere").of_user("anna").search("x")


async def test_memories_and_their_index_live_in_an_s3_store(
    seaweed: Seaweed, monkeypatch: pytest.MonkeyPatch
) -> None:
    await seaweed.make_bucket("memories")
    access = S3Access(seaweed.endpoint, seaweed.access_key, seaweed.secret_key, "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", seaweed.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", seaweed.secret_key)
    open_store: list[Callable[[], Store]] = [
        lambda: S3Store("memories", "some/prefix", access),
        lambda: S3Store("memories", "some/prefix", S3Access(seaweed.endpoint)),
    ]
    for nth, make in enumerate(open_store):
        store = make()
        anna = MemoryService(store).of_user("anna@example.org")
        await anna.put(PutMemory(text=f"Shoe{nth}"))
        assert texts(await anna.search(f"shoe{nth}")) == [f"Shoe{nth}"]
        assert len(await anna.list_memories(10)) == nth + 1
        await store.close()
