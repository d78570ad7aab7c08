"""The contract of every store."""

import asyncio
from uuid import uuid4

import pytest

from perdure.storage.store import Store, list_folders


async def test_an_object_is_read_back_as_it_was_created(store: Store) -> None:
    body = bytes(range(256)) * 300
    assert await store.create("a/b", body)
    assert await store.read("a/b") == body


async def test_an_empty_object_is_an_object(store: Store) -> None:
    assert await store.create("a", b"")
    assert await store.read("a") == b""


async def test_an_absent_object_reads_as_none(store: Store) -> None:
    await store.create("a/b", b"")
    assert await store.read(str(uuid4())) is None
    assert await store.read("a") is None
    assert await store.read("x/y/z") is None


async def test_a_key_is_created_once_and_stays_as_it_is(store: Store) -> None:
    assert await store.create("a", b"first")
    assert not await store.create("a", b"second")
    assert await store.read("a") == b"first"


async def test_creating_an_equal_object_again_is_refused(store: Store) -> None:
    assert [await store.create("a", b"one"), await store.create("a", b"one")] == [True, False]


@pytest.mark.long
async def test_one_of_many_writers_of_a_key_wins(store: Store) -> None:
    bodies = [f"writer {number}".encode() for number in range(16)]
    wins = await asyncio.gather(*(store.create("race", body) for body in bodies))
    assert wins.count(True) == 1
    assert await store.read("race") == bodies[wins.index(True)]


async def test_a_replace_writes_a_free_and_a_taken_key(store: Store) -> None:
    await store.replace("a/state", b"old and long")
    await store.replace("a/state", b"new")
    assert await store.read("a/state") == b"new"


async def test_a_deleted_object_is_gone_and_its_key_free_again(store: Store) -> None:
    for key in ("a/b/1", "a/b/2", "c"):
        await store.create(key, b"old")
    await store.delete("a/b/1")
    assert await store.read("a/b/1") is None
    assert await store.list("") == ["a/b/2", "c"]
    assert await store.create("a/b/1", b"new")
    assert await store.read("a/b/1") == b"new"


async def test_deleting_an_absent_object_changes_nothing(store: Store) -> None:
    await store.create("a/b", b"")
    for key in ("a", "a/c", "a/b/c", "x/y"):
        await store.delete(key)
    assert await store.list("") == ["a/b"]


@pytest.mark.long
async def test_an_object_is_created_beside_one_that_is_deleted(store: Store) -> None:
    for turn in range(20):
        await store.create("x/y/old", b"")
        await asyncio.gather(store.delete("x/y/old"), store.create(f"x/y/{turn}", b"new"))
        assert await store.list("x/") == [f"x/y/{turn}"]
        await store.delete(f"x/y/{turn}")


async def test_keys_are_listed_in_order_after_a_start_key(store: Store) -> None:
    for key in ("x/2", "x/10", "y/1", "x/1", "xx"):
        await store.create(key, b"")
    assert await store.list("x/") == ["x/1", "x/10", "x/2"]
    assert await store.list("x/", after="x/1") == ["x/10", "x/2"]
    assert await store.list("x/", after="x/11") == ["x/2"]
    assert await store.list("x/", after="x/2") == []
    assert await store.list("x/1") == ["x/1", "x/10"]
    assert await store.list("z/") == []


async def test_a_list_includes_nested_folders(store: Store) -> None:
    for key in ("a/1", "b/c/1", "b/c/2", "b/d/1", "e"):
        await store.create(key, b"")
    assert await store.list("") == ["a/1", "b/c/1", "b/c/2", "b/d/1", "e"]
    assert await store.list("b/", after="b/c/1") == ["b/c/2", "b/d/1"]
    assert await store.list("b/c") == ["b/c/1", "b/c/2"]


async def test_a_list_ends_at_its_limit(store: Store) -> None:
    keys = [f"x/{number}" for number in range(9)]
    await asyncio.gather(*(store.create(key, b"") for key in keys))
    assert await store.list("x/", limit=3) == keys[:3]
    assert await store.list("x/", after=keys[2], limit=3) == keys[3:6]
    assert await store.list("x/", limit=9) == keys


@pytest.mark.long
async def test_more_keys_than_a_page_are_listed(store: Store) -> None:
    keys = [f"x/{number:04d}" for number in range(1010)]
    await asyncio.gather(*(store.create(key, b"") for key in keys))
    assert await store.list("x/", limit=1005) == keys[:1005]
    assert await store.list("x/") == keys[:1000]


async def test_folders_are_listed_once_and_without_their_contents(store: Store) -> None:
    for key in ("x/a/1", "x/a/2", "x/b/c/1", "x/file", "y/d/1", "z"):
        await store.create(key, b"")
    assert await store.folders("x/") == ["a", "b"]
    assert await store.folders("") == ["x", "y"]
    assert await store.folders("nowhere/") == []
    assert await list_folders(store, "x/") == ["a", "b"]
    assert await list_folders(store, "") == ["x", "y"]
    assert await list_folders(store, "nowhere/") == []


@pytest.mark.long
async def test_more_folders_than_a_page_are_listed(store: Store) -> None:
    names = [f"{number:04d}" for number in range(2010)]
    await asyncio.gather(*(store.create(f"x/{name}/1", b"") for name in names))
    assert await list_folders(store, "x/") == names
    assert await store.folders("x/", after="0003", limit=1002) == names[4:1006]


async def test_folders_are_found_page_by_page(store: Store) -> None:
    names = {"a", "a-b", "a.b", "ab", "b", "c"}
    for name in names:
        await store.create(f"x/{name}/1", b"")
    folders: list[str] = []
    while page := await store.folders("x/", after=folders[-1] if folders else "", limit=2):
        folders.extend(page)
    assert len(folders) == len(names)
    assert set(folders) == names


@pytest.mark.parametrize("key", ["", "/a", "a//b", "a/", "../a", "a/../../b", "./a", "a\0b"])
async def test_no_key_leaves_the_store(store: Store, key: str) -> None:
    with pytest.raises(ValueError, match="is not a key of a store"):
        await store.create(key, b"")
    with pytest.raises(ValueError, match="is not a key of a store"):
        await store.read(key)
    with pytest.raises(ValueError, match="is not a key of a store"):
        await store.replace(key, b"")
    with pytest.raises(ValueError, match="is not a key of a store"):
        await store.delete(key)


async def test_a_version_is_replaced_only_while_it_is_the_newest(store: Store) -> None:
    assert await store.read_version("a/b") is None
    assert not await store.replace_version("a/b", b"new", '"none"')
    await store.create("a/b", b"first")
    first = await store.read_version("a/b")
    assert first is not None
    assert first.body == b"first"
    assert await store.replace_version("a/b", b"second", first.tag)
    assert not await store.replace_version("a/b", b"third", first.tag)
    second = await store.read_version("a/b")
    assert second is not None
    assert second.body == b"second"
    assert second.tag != first.tag


@pytest.mark.long
async def test_one_of_many_writers_of_a_version_wins(store: Store) -> None:
    await store.create("race", b"before")
    before = await store.read_version("race")
    assert before is not None
    bodies = [f"writer {number}".encode() for number in range(16)]
    wins = await asyncio.gather(
        *(store.replace_version("race", body, before.tag) for body in bodies)
    )
    assert wins.count(True) == 1
    assert await store.read("race") == bodies[wins.index(True)]
