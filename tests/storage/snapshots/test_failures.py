"""Crashes, damage, manifests that nobody should trust, and folders that will not stand still."""

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

from storage.errors import Altered, StoreError, StoreUnavailable, TooLarge, Unrestorable
from storage.snapshots.folders import opened
from storage.snapshots.manifest import parsed
from storage.snapshots.mark import at, read_mark, write_mark
from storage.snapshots.memory import Memory
from storage.snapshots.packs import Packer
from storage.snapshots.reading import Reading
from storage.snapshots.restore import restore
from storage.snapshots.scan import scan
from storage.snapshots.take import take
from storage.snapshots.tree import DEEPEST, File, Limits, Tree
from tests.storage.memory import MemoryStore
from tests.storage.snapshots.stopping import StoppingStore
from tests.storage.snapshots.trees import PREFIX, grow, portrait

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
    """Enough for several packs."""
    dice = random.Random(5)
    for nth in range(3):
        (folder / f"large{nth}").write_bytes(dice.randbytes(5 << 20))
    grow(folder, dice)


async def taken(store: MemoryStore, folder: Path) -> str:
    key = await take(store, PREFIX, folder, None, Memory())
    assert key
    return key


async def test_a_snapshot_that_was_begun_is_taken_again(
    store: MemoryStore, folder: Path, tmp_path: Path
) -> None:
    fill(folder)
    for calls in range(10):
        try:
            key = await take(StoppingStore(store, calls), PREFIX, folder, None, Memory())
        except StoreUnavailable:
            assert not [key for key in store.objects if "/packs/" not in key]
            assert at(folder) is None
        else:
            break
    assert calls >= 3
    assert key
    await restore(store, key, tmp_path / "other")
    assert portrait(tmp_path / "other") == portrait(folder)


async def test_a_restore_that_was_begun_leaves_the_folder_alone(
    store: MemoryStore, folder: Path
) -> None:
    fill(folder)
    key = await taken(store, folder)
    expected = portrait(folder)
    (folder / "new").write_text("new")
    now = portrait(folder)
    for calls in range(10):
        try:
            await restore(StoppingStore(store, calls), key, folder)
        except StoreUnavailable:
            assert portrait(folder) == now
        else:
            break
    assert calls >= 3
    assert portrait(folder) == expected


async def test_a_restore_that_died_while_it_put_the_folder_in_place_is_known(
    store: MemoryStore, folder: Path
) -> None:
    grow(folder, random.Random(6))
    key = await taken(store, folder)
    expected = portrait(folder)
    mark = read_mark(folder)
    aside = folder.parent / ".snapshots" / "workspace.aside"
    aside.mkdir()
    folder.rename(aside / "old")
    assert at(folder) is None
    folder.mkdir()
    write_mark(folder, mark)
    assert at(folder) is None
    await restore(store, key, folder)
    assert at(folder) == key
    assert portrait(folder) == expected
    assert not aside.exists()


async def test_a_cancelled_restore_leaves_nothing_behind(store: MemoryStore, folder: Path) -> None:
    fill(folder)
    key = await taken(store, folder)
    before = portrait(folder)
    for steps in range(0, 60, 7):
        task = asyncio.create_task(restore(store, key, folder))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert portrait(folder) == before
        assert not list(folder.parent.glob(".snapshots/*.aside"))


@pytest.mark.parametrize("harm", ["flipped", "missing"])
async def test_damage_is_named(store: MemoryStore, folder: Path, harm: str) -> None:
    grow(folder, random.Random(7), 20)
    key = await taken(store, folder)
    before = portrait(folder)
    for damaged, body in list(store.objects.items()):
        if harm == "missing":
            del store.objects[damaged]
        else:
            store.objects[damaged] = body[:-1] + bytes([body[-1] ^ 1])
        with pytest.raises(Altered) as caught:
            await restore(store, key, folder)
        assert caught.value.key == damaged
        assert portrait(folder) == before
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
    "too deep": hostile(folders={"/".join("a" * nth): [0o755, 0] for nth in range(DEEPEST + 3)}),
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


async def test_what_is_no_manifest_is_refused(store: MemoryStore, folder: Path) -> None:
    for body in (b"", b"{}", zlib.compress(b"[1"), zlib.compress(b"{}")[:-1]):
        with pytest.raises(Unrestorable):
            await restore(store, put(store, body), folder)


async def test_a_delta_of_a_delta_is_refused(store: MemoryStore, folder: Path) -> None:
    base = await taken(store, folder)
    for _ in range(2):
        base = put(store, zlib.compress(json.dumps(hostile(base=base)).encode()))
    with pytest.raises(Unrestorable, match="goes back further"):
        await restore(store, base, folder)


async def test_a_pack_with_other_bytes_is_refused(store: MemoryStore, folder: Path) -> None:
    pack = zlib.compress(b"other")
    name = f"{PREFIX}workspace/packs/{hashlib.sha256(pack).hexdigest()}"
    store.objects[name] = pack
    pieces, files = [[PIECE, 0, 0, 5]], {"a": [0o644, 0, 5, False, [0]]}
    told = hostile(packs=[name], pieces=pieces, files=files)
    with pytest.raises(Unrestorable, match="not in the pack"):
        await restore(store, put(store, zlib.compress(json.dumps(told).encode())), folder)
    assert list(folder.iterdir()) == []


async def test_a_file_that_is_too_large_is_refused_before_it_is_read(
    store: MemoryStore, folder: Path
) -> None:
    with (folder / "disk.img").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(TooLarge, match=r"'disk\.img' in the workspace has 1,099,511,627,776 bytes"):
        await take(store, PREFIX, folder, None, Memory())
    assert store.objects == {}


def test_a_folder_that_is_too_large_is_refused(folder: Path) -> None:
    for nth in range(4):
        (folder / f"{nth}").write_bytes(b"1234")
    with opened(folder) as root:
        assert len(scan(root, Limits(4, 16, 5))) == 5
        with pytest.raises(TooLarge, match="more than 15 bytes"):
            scan(root, Limits(4, 15, 5))
        with pytest.raises(TooLarge, match="more than 4 files and folders"):
            scan(root, Limits(4, 16, 4))


async def test_what_is_too_deep_is_left_out_and_named(store: MemoryStore, folder: Path) -> None:
    deep = folder.joinpath(*["d"] * (DEEPEST + 2))
    deep.mkdir(parents=True)
    (deep.parents[1] / "file").write_text("kept")
    key = await taken(store, folder)
    assert list(parsed(store.objects[key]).skipped.values()) == ["it is too deep"]
    await restore(store, key, folder)
    assert len(portrait(folder)) == DEEPEST + 2


def read_after(folder: Path, change: Callable[[], object]) -> Tree:
    """What is taken of a folder that changes between the first look at it and the reading."""
    with opened(folder) as root:
        found = scan(root, Limits())
        change()
        reading = Reading(root, found, {}, {}, Packer(PREFIX, {}), 0)
        assert list(reading.packs()) == []
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


def test_a_file_that_became_a_pipe_keeps_nobody_waiting(folder: Path) -> None:
    (folder / "file").write_text("a")

    def swap() -> None:
        (folder / "file").unlink()
        os.mkfifo(folder / "file")

    assert list(read_after(folder, swap)) == [""]


def test_another_name_of_a_file_that_was_replaced_keeps_its_bytes(folder: Path) -> None:
    (folder / "a").write_text("old")
    (folder / "b").hardlink_to(folder / "a")

    def swap() -> None:
        (folder / "a").unlink()
        (folder / "a").write_text("newer")

    tree = read_after(folder, swap)
    sizes = [entry.size for entry in tree.values() if isinstance(entry, File)]
    assert sizes == [5, 3]


async def test_a_file_that_never_stands_still_is_taken_and_marked(
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
            while not last or not parsed(store.objects[last]).files["log"][3]:
                last = await take(store, PREFIX, folder, last, Memory()) or last
    finally:
        over.set()
        writer.join()
    await restore(store, last, folder)
    assert (folder / "log").stat().st_size == 8 << 20


async def test_a_folder_of_anothers_making_is_not_written_to(
    store: MemoryStore, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "others").mkdir()
    (tmp_path / ".snapshots").symlink_to(tmp_path / "others")
    with pytest.raises(StoreError, match="is another's"):
        await take(store, PREFIX, folder, None, Memory())
    assert list((tmp_path / "others").iterdir()) == []


async def test_a_folder_that_is_not_there_cannot_be_taken(
    store: MemoryStore, tmp_path: Path
) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        await take(store, PREFIX, tmp_path / "nowhere", None, Memory())
    assert caught.value.errno == errno.ENOENT
