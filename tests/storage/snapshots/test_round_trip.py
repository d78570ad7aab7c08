"""A restored folder equals the one taken: bytes, modes, times, links and empty folders."""

import asyncio
import os
import random
from pathlib import Path

import pytest

from perdure.storage.files import FileStore
from perdure.storage.snapshots.folders import open_folder
from perdure.storage.snapshots.manifest import SnapshotCache, parse_manifest
from perdure.storage.snapshots.mark import Mark, last_snapshot_key
from perdure.storage.snapshots.packs import Packer
from perdure.storage.snapshots.reading import TreeReader, scan
from perdure.storage.snapshots.restore import restore
from perdure.storage.snapshots.take import take
from perdure.storage.snapshots.tree import File, SnapshotLimits
from perdure.storage.store import Store
from tests.storage.memory import MemoryStore
from tests.storage.snapshots.trees import (
    FORK,
    PREFIX,
    change,
    folder_contents,
    make_random_folder,
    no_secrets,
)


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "workspace"
    made.mkdir()
    return made


async def take_anew(store: Store, folder: Path, last: str | None = None) -> str:
    """Take a snapshot as a worker without any cache."""
    key = await take(store, PREFIX, folder, last, SnapshotCache(), no_secrets)
    assert key
    return key


def packs(store: MemoryStore) -> set[str]:
    return {key for key in store.objects if "/packs/" in key}


@pytest.mark.parametrize("first", range(0, 200, 20))
async def test_a_random_folder_is_restored_as_it_was(
    first: int, store: MemoryStore, tmp_path: Path
) -> None:
    for seed in range(first, first + 20):
        folder = tmp_path / f"{seed}"
        make_random_folder(folder, random.Random(seed))
        expected = folder_contents(folder)
        await restore(store, await take_anew(store, folder), tmp_path / "restored")
        assert folder_contents(tmp_path / "restored") == expected, seed


@pytest.mark.parametrize("seed", range(8))
async def test_every_state_of_a_folder_is_restored_from_its_own_key(
    seed: int, store: MemoryStore, tmp_path: Path
) -> None:
    dice, folder, memory = random.Random(seed), tmp_path / "one", SnapshotCache()
    make_random_folder(folder, dice)
    states = []
    last = None
    for _ in range(12):
        key = await take(store, PREFIX, folder, last, memory, no_secrets)
        last = key or last
        assert last
        states.append((last, folder_contents(folder)))
        for _ in range(dice.randrange(3)):
            change(folder, dice)
    for key, expected in dice.sample(states, 6):
        await restore(store, key, tmp_path / "two", memory)
        assert folder_contents(tmp_path / "two") == expected


async def test_an_unchanged_folder_makes_no_snapshot(folder: Path) -> None:
    store = MemoryStore()
    make_random_folder(folder, random.Random(1))
    key = await take_anew(store, folder)
    before = dict(store.objects)
    assert await take(store, PREFIX, folder, key, SnapshotCache(), no_secrets) is None
    assert store.objects == before


async def test_a_change_that_keeps_size_and_mtime_is_detected(folder: Path) -> None:
    """A clock that ticks every few milliseconds shows no difference at this speed."""
    store, last = MemoryStore(), None
    (folder / "file").write_bytes(b"0")
    for nth in range(30):
        with (folder / "file").open("r+b") as file:
            file.write(b"%d" % (nth % 10))
        os.utime(folder / "file", ns=(0, 0))
        last = await take_anew(store, folder, last)
    await restore(store, last or "", folder)
    assert (folder / "file").read_bytes() == b"9"


async def test_an_unchanged_file_gets_a_stamp(folder: Path) -> None:
    store = MemoryStore()
    (folder / "file").write_bytes(b"some bytes")
    key = await take_anew(store, folder)
    while not Mark.read(folder).stamps:  # the clock of the file system has not gone on yet
        assert await take(store, PREFIX, folder, key, SnapshotCache(), no_secrets) is None
    at = (folder / "file").stat()
    assert Mark.read(folder).stamps == {"file": (at.st_ino, at.st_ctime_ns)}


def test_a_file_with_a_stamp_is_not_read_again(folder: Path) -> None:
    (folder / "file").write_bytes(b"some bytes")
    at = (folder / "file").stat()
    seen = {"file": (at.st_ino, at.st_ctime_ns)}
    known = File(at.st_mode & 0o777, at.st_mtime_ns, 10, ("known",))
    with open_folder(folder) as root:
        reading = TreeReader(
            root,
            scan(root, SnapshotLimits()),
            {"file": known},
            seen,
            Packer(PREFIX, {}),
            0,
            no_secrets,
        )
        assert list(reading.read_packs()) == []
    assert reading.tree["file"] is known


async def test_a_change_in_one_file_of_many_costs_two_small_objects(folder: Path) -> None:
    store = MemoryStore()
    for nth in range(500):
        (folder / f"{nth}").write_text(f"file {nth}")
    key = await take_anew(store, folder)
    assert len(store.objects) == 2
    (folder / "7").write_text("changed")
    before = set(store.objects)
    key = await take_anew(store, folder, key)
    new = [store.objects[item] for item in set(store.objects) - before]
    assert len(new) == 2
    assert sum(map(len, new)) < 1000


async def test_only_the_changed_pieces_of_a_large_file_are_stored(folder: Path) -> None:
    store = MemoryStore()
    content = bytearray(random.Random(1).randbytes(1 << 20) * 10)
    content[9 << 20] ^= 1
    (folder / "large").write_bytes(content)
    key = await take_anew(store, folder)
    before = packs(store)
    content[-1] ^= 1
    (folder / "large").write_bytes(content)
    key = await take_anew(store, folder, key)
    (new,) = packs(store) - before
    assert len(store.objects[new]) < 5 << 20
    await restore(store, key, folder)
    assert (folder / "large").read_bytes() == content


async def test_deltas_refer_to_a_base_that_is_renewed(folder: Path) -> None:
    store, last, bases = MemoryStore(), None, set()
    memory = SnapshotCache()
    for nth in range(40):
        (folder / f"{nth % 5}").write_text(f"{nth}")
        last = await take(store, PREFIX, folder, last, memory, no_secrets)
        assert last
        manifest = parse_manifest(store.objects[last])
        assert manifest.spent < 150
        bases.add(manifest.base or last)
    assert 1 < len(bases) < 10


@pytest.mark.long
async def test_many_small_packs_are_gathered_into_few(folder: Path) -> None:
    store, last, memory = MemoryStore(), None, SnapshotCache()
    least = 1000
    for nth in range(150):
        (folder / f"{nth}").write_text(f"{nth}")
        last = await take(store, PREFIX, folder, last, memory, no_secrets)
        assert last
        if (manifest := parse_manifest(store.objects[last])).base is None and nth > 20:
            least = min(least, len(manifest.packs))
    assert least == 1
    expected = folder_contents(folder)
    await restore(store, last or "", folder)
    assert folder_contents(folder) == expected


async def test_a_fork_continues_from_its_parents_snapshot(tmp_path: Path, folder: Path) -> None:
    store = MemoryStore()
    make_random_folder(folder, random.Random(2))
    key = await take_anew(store, folder)
    before = set(store.objects)
    await restore(store, key, tmp_path / "fork")
    (tmp_path / "fork" / "new").write_text("new")
    expected = folder_contents(tmp_path / "fork")
    forked = await take(store, FORK, tmp_path / "fork", key, SnapshotCache(), no_secrets)
    assert forked
    assert all(item.startswith(FORK) for item in set(store.objects) - before)
    await restore(store, forked, folder)
    assert folder_contents(folder) == expected


async def test_a_restore_removes_files_that_are_not_in_the_snapshot(folder: Path) -> None:
    store = MemoryStore()
    (folder / "kept").write_text("kept")
    key = await take_anew(store, folder)
    expected = folder_contents(folder)
    (folder / "more" / "and more").mkdir(parents=True)
    (folder / "kept").write_text("lost")
    await restore(store, key, folder)
    assert folder_contents(folder) == expected


async def test_a_folder_knows_its_snapshot(tmp_path: Path, folder: Path) -> None:
    store = MemoryStore()
    assert last_snapshot_key(folder) is None
    key = await take_anew(store, folder)
    assert last_snapshot_key(folder) == key
    await restore(store, key, tmp_path / "other")
    assert last_snapshot_key(tmp_path / "other") == key
    folder.rename(tmp_path / "elsewhere")
    assert last_snapshot_key(folder) is None
    folder.mkdir()
    (tmp_path / "elsewhere").rmdir()
    assert last_snapshot_key(folder) is None
    assert sorted(path.name for path in tmp_path.iterdir()) == [".snapshots", "other", "workspace"]


async def test_a_special_file_is_skipped_and_named(folder: Path) -> None:
    store = MemoryStore()
    os.mkfifo(folder / "pipe")
    key = await take_anew(store, folder)
    assert parse_manifest(store.objects[key]).skipped == {"pipe": "it is a pipe"}
    await restore(store, key, folder)
    assert list(folder.iterdir()) == []


async def test_setuid_bits_of_files_are_dropped(folder: Path) -> None:
    store = MemoryStore()
    (folder / "program").write_text("#!/bin/sh")
    (folder / "program").chmod(0o6755)
    key = await take_anew(store, folder)
    await restore(store, key, folder)
    assert (folder / "program").stat().st_mode & 0o7777 == 0o755


async def test_racing_workers_take_the_same_folder(folder: Path, tmp_path: Path) -> None:
    store = FileStore(tmp_path / "store")
    make_random_folder(folder, random.Random(3), 30)
    keys = await asyncio.gather(
        *(take(store, PREFIX, folder, None, SnapshotCache(), no_secrets) for _ in range(4))
    )
    assert len(set(keys)) == 1
    await restore(store, keys[0] or "", tmp_path / "other")
    assert folder_contents(tmp_path / "other") == folder_contents(folder)
    await store.close()
