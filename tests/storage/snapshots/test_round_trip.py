"""What was taken is restored: byte for byte, with modes, times, links and empty folders."""

import asyncio
import os
import random
from pathlib import Path

import pytest

from storage.files import FileStore
from storage.snapshots.folders import opened
from storage.snapshots.manifest import parsed
from storage.snapshots.mark import at, read_mark
from storage.snapshots.memory import Memory
from storage.snapshots.packs import Packer
from storage.snapshots.reading import Reading
from storage.snapshots.restore import restore
from storage.snapshots.scan import scan
from storage.snapshots.take import take
from storage.snapshots.tree import File, Limits
from storage.store import Store
from tests.storage.memory import MemoryStore
from tests.storage.snapshots.trees import FORK, PREFIX, change, grow, portrait


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "workspace"
    made.mkdir()
    return made


async def taken(store: Store, folder: Path, last: str | None = None) -> str:
    """By a worker that knows nothing but what is on the disk and in the store."""
    key = await take(store, PREFIX, folder, last, Memory())
    assert key
    return key


def packs(store: MemoryStore) -> set[str]:
    return {key for key in store.objects if "/packs/" in key}


@pytest.mark.parametrize("first", range(0, 200, 20))
async def test_a_random_folder_is_restored_as_it_was(
    first: int, store: MemoryStore, tmp_path: Path
) -> None:
    for seed in range(first, first + 20):
        one = tmp_path / f"{seed}"
        grow(one, random.Random(seed))
        expected = portrait(one)
        await restore(store, await taken(store, one), tmp_path / "restored")
        assert portrait(tmp_path / "restored") == expected, seed


@pytest.mark.parametrize("seed", range(8))
async def test_every_state_of_a_folder_is_restored_from_its_own_key(
    seed: int, store: MemoryStore, tmp_path: Path
) -> None:
    dice, folder, memory = random.Random(seed), tmp_path / "one", Memory()
    grow(folder, dice)
    states = []
    last = None
    for _ in range(12):
        key = await take(store, PREFIX, folder, last, memory)
        last = key or last
        assert last
        states.append((last, portrait(folder)))
        for _ in range(dice.randrange(3)):
            change(folder, dice)
    for key, expected in dice.sample(states, 6):
        await restore(store, key, tmp_path / "two", memory)
        assert portrait(tmp_path / "two") == expected


async def test_nothing_changed_is_no_snapshot(folder: Path) -> None:
    store = MemoryStore()
    grow(folder, random.Random(1))
    key = await taken(store, folder)
    before = dict(store.objects)
    assert await take(store, PREFIX, folder, key, Memory()) is None
    assert store.objects == before


async def test_a_change_that_leaves_size_and_time_alone_is_seen(folder: Path) -> None:
    """As fast as can be, so that a clock which ticks every few milliseconds shows no difference."""
    store, last = MemoryStore(), None
    (folder / "file").write_bytes(b"0")
    for nth in range(30):
        with (folder / "file").open("r+b") as file:
            file.write(b"%d" % (nth % 10))
        os.utime(folder / "file", ns=(0, 0))
        last = await taken(store, folder, last)
    await restore(store, last or "", folder)
    assert (folder / "file").read_bytes() == b"9"


async def test_a_file_that_stood_still_is_known_again(folder: Path) -> None:
    store = MemoryStore()
    (folder / "file").write_bytes(b"some bytes")
    key = await taken(store, folder)
    while not read_mark(folder).seen:  # the clock of the file system has not gone on yet
        assert await take(store, PREFIX, folder, key, Memory()) is None
    at = (folder / "file").stat()
    assert read_mark(folder).seen == {"file": (at.st_ino, at.st_ctime_ns)}


def test_what_is_known_is_not_read_again(folder: Path) -> None:
    (folder / "file").write_bytes(b"some bytes")
    at = (folder / "file").stat()
    seen = {"file": (at.st_ino, at.st_ctime_ns)}
    known = File(at.st_mode & 0o777, at.st_mtime_ns, 10, ("known",))
    with opened(folder) as root:
        reading = Reading(root, scan(root, Limits()), {"file": known}, seen, Packer(PREFIX, {}), 0)
        assert list(reading.packs()) == []
    assert reading.tree["file"] is known


async def test_a_change_in_one_file_of_many_costs_two_small_objects(folder: Path) -> None:
    store = MemoryStore()
    for nth in range(500):
        (folder / f"{nth}").write_text(f"file {nth}")
    key = await taken(store, folder)
    assert len(store.objects) == 2
    (folder / "7").write_text("changed")
    before = set(store.objects)
    key = await taken(store, folder, key)
    new = [store.objects[one] for one in set(store.objects) - before]
    assert len(new) == 2
    assert sum(map(len, new)) < 1000


async def test_a_large_file_is_stored_in_pieces_and_only_those_that_changed(folder: Path) -> None:
    store = MemoryStore()
    content = bytearray(random.Random(1).randbytes(1 << 20) * 10)
    content[9 << 20] ^= 1
    (folder / "large").write_bytes(content)
    key = await taken(store, folder)
    before = packs(store)
    content[-1] ^= 1
    (folder / "large").write_bytes(content)
    key = await taken(store, folder, key)
    (new,) = packs(store) - before
    assert len(store.objects[new]) < 5 << 20
    await restore(store, key, folder)
    assert (folder / "large").read_bytes() == content


async def test_deltas_are_told_by_a_base_that_is_renewed(folder: Path) -> None:
    store, last, bases = MemoryStore(), None, set()
    memory = Memory()
    for nth in range(40):
        (folder / f"{nth % 5}").write_text(f"{nth}")
        last = await take(store, PREFIX, folder, last, memory)
        assert last
        manifest = parsed(store.objects[last])
        assert manifest.spent < 150
        bases.add(manifest.base or last)
    assert 1 < len(bases) < 10


async def test_many_small_packs_are_gathered_into_few(folder: Path) -> None:
    store, last, memory = MemoryStore(), None, Memory()
    least = 1000
    for nth in range(150):
        (folder / f"{nth}").write_text(f"{nth}")
        last = await take(store, PREFIX, folder, last, memory)
        assert last
        if (manifest := parsed(store.objects[last])).base is None and nth > 20:
            least = min(least, len(manifest.packs))
    assert least == 1
    expected = portrait(folder)
    await restore(store, last or "", folder)
    assert portrait(folder) == expected


async def test_a_fork_goes_on_from_the_snapshot_of_another(tmp_path: Path, folder: Path) -> None:
    store = MemoryStore()
    grow(folder, random.Random(2))
    key = await taken(store, folder)
    before = set(store.objects)
    await restore(store, key, tmp_path / "fork")
    (tmp_path / "fork" / "new").write_text("new")
    expected = portrait(tmp_path / "fork")
    forked = await take(store, FORK, tmp_path / "fork", key, Memory())
    assert forked
    assert all(one.startswith(FORK) for one in set(store.objects) - before)
    await restore(store, forked, folder)
    assert portrait(folder) == expected


async def test_what_a_snapshot_does_not_have_goes(folder: Path) -> None:
    store = MemoryStore()
    (folder / "kept").write_text("kept")
    key = await taken(store, folder)
    expected = portrait(folder)
    (folder / "more" / "and more").mkdir(parents=True)
    (folder / "kept").write_text("lost")
    await restore(store, key, folder)
    assert portrait(folder) == expected


async def test_a_folder_knows_its_snapshot(tmp_path: Path, folder: Path) -> None:
    store = MemoryStore()
    assert at(folder) is None
    key = await taken(store, folder)
    assert at(folder) == key
    await restore(store, key, tmp_path / "other")
    assert at(tmp_path / "other") == key
    folder.rename(tmp_path / "elsewhere")
    assert at(folder) is None
    folder.mkdir()
    (tmp_path / "elsewhere").rmdir()
    assert at(folder) is None
    assert sorted(one.name for one in tmp_path.iterdir()) == [".snapshots", "other", "workspace"]


async def test_what_is_no_file_is_left_out_and_named(folder: Path) -> None:
    store = MemoryStore()
    os.mkfifo(folder / "pipe")
    key = await taken(store, folder)
    assert parsed(store.objects[key]).skipped == {"pipe": "it is a pipe"}
    await restore(store, key, folder)
    assert list(folder.iterdir()) == []


async def test_a_file_that_would_run_as_its_owner_no_longer_does(folder: Path) -> None:
    store = MemoryStore()
    (folder / "program").write_text("#!/bin/sh")
    (folder / "program").chmod(0o6755)
    key = await taken(store, folder)
    await restore(store, key, folder)
    assert (folder / "program").stat().st_mode & 0o7777 == 0o755


async def test_racing_workers_take_the_same_folder(folder: Path, tmp_path: Path) -> None:
    store = FileStore(tmp_path / "store")
    grow(folder, random.Random(3), 30)
    keys = await asyncio.gather(*(take(store, PREFIX, folder, None, Memory()) for _ in range(4)))
    assert len(set(keys)) == 1
    await restore(store, keys[0] or "", tmp_path / "other")
    assert portrait(tmp_path / "other") == portrait(folder)
    await store.close()


async def test_what_is_made_belongs_to_the_owner(folder: Path) -> None:
    store, owner = MemoryStore(), (os.getuid(), os.getgid())
    if owner[0] == 0:
        owner = (12345, 23456)
    grow(folder, random.Random(4))
    expected = portrait(folder)
    await restore(store, await taken(store, folder), folder, owner=owner)
    assert portrait(folder) == expected
    owners = {(one.lstat().st_uid, one.lstat().st_gid) for one in [folder, *folder.rglob("*")]}
    assert owners == {owner}
