"""Snapshots under crashes, damage, hostile manifests and concurrent changes."""

import asyncio
import errno
import hashlib
import json
import os
import random
import threading
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perdure.storage.errors import Altered, StoreError, StoreUnavailable, TooLarge, Unrestorable
from perdure.storage.snapshots.folders import open_folder
from perdure.storage.snapshots.manifest import SnapshotCache, parse_manifest
from perdure.storage.snapshots.mark import Mark, last_snapshot_key
from perdure.storage.snapshots.packs import Packer
from perdure.storage.snapshots.reading import TreeReader, scan
from perdure.storage.snapshots.restore import restore
from perdure.storage.snapshots.take import take
from perdure.storage.snapshots.tree import MAX_DEPTH, File, SnapshotLimits, Tree
from tests.storage.memory import MemoryStore
from tests.storage.snapshots.stopping import StoppingStore
from tests.storage.snapshots.trees import PREFIX, folder_contents, make_random_folder, no_secrets

PIECE = "0" * 64


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "workspace"
    made.mkdir()
    return made


def fill(folder: Path) -> None:
    """Write files for several packs."""
    dice = random.Random(5)
    for nth in range(3):
        (folder / f"large{nth}").write_bytes(dice.randbytes(5 << 20))
    make_random_folder(folder, dice)


async def take_first(store: MemoryStore, folder: Path) -> str:
    key = await take(store, PREFIX, folder, None, SnapshotCache(), no_secrets)
    assert key
    return key


async def test_an_interrupted_snapshot_is_taken_again(
    store: MemoryStore, folder: Path, tmp_path: Path
) -> None:
    fill(folder)
    for calls in range(10):
        try:
            key = await take(
                StoppingStore(store, calls), PREFIX, folder, None, SnapshotCache(), no_secrets
            )
        except StoreUnavailable:
            assert not [key for key in store.objects if "/packs/" not in key]
            assert last_snapshot_key(folder) is None
        else:
            break
    assert calls >= 3
    assert key
    await restore(store, key, tmp_path / "other")
    assert folder_contents(tmp_path / "other") == folder_contents(folder)


@pytest.mark.long
async def test_an_interrupted_restore_leaves_the_folder_as_it_was(
    store: MemoryStore, folder: Path
) -> None:
    fill(folder)
    key = await take_first(store, folder)
    expected = folder_contents(folder)
    (folder / "new").write_text("new")
    now = folder_contents(folder)
    for calls in range(10):
        try:
            await restore(StoppingStore(store, calls), key, folder)
        except StoreUnavailable:
            assert folder_contents(folder) == now
        else:
            break
    assert calls >= 3
    assert folder_contents(folder) == expected


async def test_a_restore_killed_while_replacing_the_folder_leaves_no_mark(
    store: MemoryStore, folder: Path
) -> None:
    make_random_folder(folder, random.Random(6))
    key = await take_first(store, folder)
    expected = folder_contents(folder)
    mark = Mark.read(folder)
    aside = folder.parent / ".snapshots" / "workspace.aside"
    aside.mkdir()
    folder.rename(aside / "old")
    assert last_snapshot_key(folder) is None
    folder.mkdir()
    mark.write(folder)
    assert last_snapshot_key(folder) is None
    await restore(store, key, folder)
    assert last_snapshot_key(folder) == key
    assert folder_contents(folder) == expected
    assert not aside.exists()


async def test_a_cancelled_restore_leaves_nothing_behind(store: MemoryStore, folder: Path) -> None:
    fill(folder)
    key = await take_first(store, folder)
    before = folder_contents(folder)
    for steps in range(0, 60, 7):
        task = asyncio.create_task(restore(store, key, folder))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert folder_contents(folder) == before
        assert not list(folder.parent.glob(".snapshots/*.aside"))


@pytest.mark.parametrize("harm", ["flipped", "missing"])
async def test_a_damaged_object_is_named(store: MemoryStore, folder: Path, harm: str) -> None:
    make_random_folder(folder, random.Random(7), 20)
    key = await take_first(store, folder)
    before = folder_contents(folder)
    for damaged, body in list(store.objects.items()):
        if harm == "missing":
            del store.objects[damaged]
        else:
            store.objects[damaged] = body[:-1] + bytes([body[-1] ^ 1])
        with pytest.raises(Altered) as caught:
            await restore(store, key, folder)
        assert caught.value.key == damaged
        assert folder_contents(folder) == before
        store.objects[damaged] = body


def hostile(**parts: object) -> dict[str, Any]:
    whole: dict[str, Any] = {
        "version": 1,
        "base": None,
        "spent": 0,
        "packs": [],
        "pieces": [],
        "files": {},
    }
    whole |= {"folders": {"": [0o755, 0]}, "symlinks": {}, "hardlinks": {}, "skipped": {}}
    return whole | {"gone": []} | parts


HOSTILE: dict[str, dict[str, Any]] = {
    "another time": hostile(symlinks={"a": ["b", 10**30]}),
    "above": hostile(folders={"": [0o755, 0], "..": [0o755, 0]}),
    "above, in disguise": hostile(folders={"": [0o755, 0], "%2e%2e": [0o755, 0]}),
    "absolute": hostile(files={"/etc/passwd": [0o644, 0, 0, False, []]}),
    "in a link": hostile(
        symlinks={"link": ["/tmp", 0]}, files={"link/file": [0o644, 0, 0, False, []]}
    ),
    "in a file": hostile(files={"a": [0o644, 0, 0, False, []], "a/b": [0o644, 0, 0, False, []]}),
    "in no folder": hostile(files={"a/b": [0o644, 0, 0, False, []]}),
    "an empty name": hostile(folders={"": [0o755, 0], "a": [0o755, 0], "a/": [0o755, 0]}),
    "a NUL": hostile(files={"a%00": [0o644, 0, 0, False, []]}),
    "too deep": hostile(folders={"/".join("a" * nth): [0o755, 0] for nth in range(MAX_DEPTH + 3)}),
    "too long": hostile(files={"a" * 256: [0o644, 0, 0, False, []]}),
    "no root": hostile(folders={}),
    "a root that is a link": hostile(folders={}, symlinks={"": ["/tmp", 0]}),
    "a link to outside": hostile(hardlinks={"a": "../secret"}),
    "a link to a link": hostile(hardlinks={"a": "b", "b": "a"}),
    "an empty target": hostile(symlinks={"a": ["", 0]}),
    "a piece that is not there": hostile(files={"a": [0o644, 0, 1, False, [0]]}),
    "a file of another size": hostile(files={"a": [0o644, 0, 1 << 40, False, []]}),
    "a strange mode": hostile(files={"a": [0o170777, 0, 0, False, []]}),
    "another version": hostile(version=2),
    "another's object": hostile(packs=["users/x/secrets"]),
    "an object above": hostile(
        packs=[f"users/../conversations/{'0' * 36}/workspace/packs/{PIECE}"]
    ),
    "a base above": hostile(base="../../etc/passwd"),
    "no table": {"version": 1},
}


def put(store: MemoryStore, body: bytes) -> str:
    key = f"{PREFIX}workspace/{hashlib.sha256(body).hexdigest()}"
    store.objects[key] = body
    return key


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_manifest_is_refused(name: str, store: MemoryStore, folder: Path) -> None:
    key = put(store, zlib.compress(json.dumps(HOSTILE[name]).encode()))
    with pytest.raises(Unrestorable, match="No workspace may be made"):
        await restore(store, key, folder)
    assert list(folder.iterdir()) == []


async def test_bytes_that_are_no_manifest_are_refused(store: MemoryStore, folder: Path) -> None:
    for body in (b"", b"{}", zlib.compress(b"[1"), zlib.compress(b"{}")[:-1]):
        with pytest.raises(Unrestorable):
            await restore(store, put(store, body), folder)


async def test_a_delta_of_a_delta_is_refused(store: MemoryStore, folder: Path) -> None:
    base = await take_first(store, folder)
    for _ in range(2):
        base = put(store, zlib.compress(json.dumps(hostile(base=base)).encode()))
    with pytest.raises(Unrestorable, match="goes back further"):
        await restore(store, base, folder)


async def test_a_pack_with_other_bytes_is_refused(store: MemoryStore, folder: Path) -> None:
    pack = zlib.compress(b"other")
    name = f"{PREFIX}workspace/packs/{hashlib.sha256(pack).hexdigest()}"
    store.objects[name] = pack
    pieces, files = [[PIECE, 0, 0, 5]], {"a": [0o644, 0, 5, False, [0]]}
    manifest = hostile(packs=[name], pieces=pieces, files=files)
    with pytest.raises(Unrestorable, match="not in the pack"):
        await restore(store, put(store, zlib.compress(json.dumps(manifest).encode())), folder)
    assert list(folder.iterdir()) == []


async def test_a_file_that_is_too_large_is_refused_before_it_is_read(
    store: MemoryStore, folder: Path
) -> None:
    with (folder / "disk.img").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(TooLarge, match=r"'disk\.img' in the workspace has 1,099,511,627,776 bytes"):
        await take(store, PREFIX, folder, None, SnapshotCache(), no_secrets)
    assert store.objects == {}


def test_a_folder_that_is_too_large_is_refused(folder: Path) -> None:
    for nth in range(4):
        (folder / f"{nth}").write_bytes(b"1234")
    with open_folder(folder) as root:
        assert len(scan(root, SnapshotLimits(4, 16, 5))) == 5
        with pytest.raises(TooLarge, match="more than 15 bytes"):
            scan(root, SnapshotLimits(4, 15, 5))
        with pytest.raises(TooLarge, match="more than 4 files and folders"):
            scan(root, SnapshotLimits(4, 16, 4))


async def test_a_folder_that_is_too_deep_is_skipped_and_named(
    store: MemoryStore, folder: Path
) -> None:
    deep = folder.joinpath(*["d"] * (MAX_DEPTH + 2))
    deep.mkdir(parents=True)
    (deep.parents[1] / "file").write_text("kept")
    key = await take_first(store, folder)
    assert list(parse_manifest(store.objects[key]).skipped.values()) == ["it is too deep"]
    await restore(store, key, folder)
    assert len(folder_contents(folder)) == MAX_DEPTH + 2


def read_after(folder: Path, change: Callable[[], object]) -> Tree:
    """Read a folder that changes between the scan and the read."""
    with open_folder(folder) as root:
        entries = scan(root, SnapshotLimits())
        change()
        reading = TreeReader(root, entries, {}, {}, Packer(PREFIX, {}), 0, no_secrets)
        assert list(reading.read_packs()) == []
    return reading.tree


def test_a_file_that_became_a_link_to_a_secret_is_not_read(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (folder / "file").write_text("a")

    def swap() -> None:
        (folder / "file").unlink()
        (folder / "file").symlink_to(tmp_path / "secret")

    assert list(read_after(folder, swap)) == [""]


def test_a_folder_that_became_a_link_is_not_entered(folder: Path, tmp_path: Path) -> None:
    for place in (tmp_path / "outside", folder / "inside"):
        place.mkdir()
        (place / "file").write_text(place.name)

    def swap() -> None:
        (folder / "inside").rename(tmp_path / "elsewhere")
        (folder / "inside").symlink_to(tmp_path / "outside")

    assert list(read_after(folder, swap)) == ["", "inside"]


def test_a_file_that_became_a_pipe_does_not_block(folder: Path) -> None:
    (folder / "file").write_text("a")

    def swap() -> None:
        (folder / "file").unlink()
        os.mkfifo(folder / "file")

    assert list(read_after(folder, swap)) == [""]


def test_a_hard_link_of_a_replaced_file_keeps_its_bytes(folder: Path) -> None:
    (folder / "a").write_text("old")
    (folder / "b").hardlink_to(folder / "a")

    def swap() -> None:
        (folder / "a").unlink()
        (folder / "a").write_text("newer")

    tree = read_after(folder, swap)
    sizes = [entry.size for entry in tree.values() if isinstance(entry, File)]
    assert sizes == [5, 3]


async def test_a_file_that_changes_during_every_read_is_stored_as_torn(
    store: MemoryStore, folder: Path
) -> None:
    over = threading.Event()
    (folder / "log").write_bytes(bytes(8 << 20))

    def write() -> None:
        with (folder / "log").open("r+b", buffering=0) as file:
            while not over.is_set():
                file.seek(0)
                file.write(random.randbytes(16))

    writer = threading.Thread(target=write)
    writer.start()
    last = None
    try:
        async with asyncio.timeout(60):
            while not last or not parse_manifest(store.objects[last]).files["log"][3]:
                last = await take(store, PREFIX, folder, last, SnapshotCache(), no_secrets) or last
    finally:
        over.set()
        writer.join()
    await restore(store, last, folder)
    assert (folder / "log").stat().st_size == 8 << 20


async def test_another_users_snapshots_folder_is_not_written_to(
    store: MemoryStore, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "others").mkdir()
    (tmp_path / ".snapshots").symlink_to(tmp_path / "others")
    with pytest.raises(StoreError, match="is another's"):
        await take(store, PREFIX, folder, None, SnapshotCache(), no_secrets)
    assert list((tmp_path / "others").iterdir()) == []


async def test_a_missing_folder_cannot_be_taken(store: MemoryStore, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        await take(store, PREFIX, tmp_path / "nowhere", None, SnapshotCache(), no_secrets)
    assert caught.value.errno == errno.ENOENT
