"""A folder as a store: killed writers, exhausted file descriptors, and invalid folders."""

import hashlib
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from perdure.storage.errors import StoreRefused, StoreUnavailable
from perdure.storage.files import FileStore
from tests.storage.killed_writer import body

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("nameless", ["with", "without"])
@pytest.mark.parametrize("objects", [1, 4, 7, 12])
async def test_a_killed_writer_leaves_no_torn_object(
    tmp_path: Path, objects: int, nameless: str
) -> None:
    acknowledged = write_until_killed(tmp_path, objects, nameless)
    store = FileStore(tmp_path)
    keys = await store.list("")
    assert set(acknowledged) <= set(keys)
    for key in keys:
        content = await store.read(key)
        assert content is not None
        assert hashlib.sha256(content[64:]).hexdigest().encode() == content[:64]
    assert not await store.create(acknowledged[0], b"another")
    assert await store.read(acknowledged[0]) == body(acknowledged[0])
    await store.close()


def write_until_killed(folder: Path, objects: int, nameless: str) -> list[str]:
    """Kill a writer after `objects` objects, in the middle of its next step."""
    command = [sys.executable, "-m", "tests.storage.killed_writer", str(folder), "name", nameless]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as writer:
        assert writer.stdout
        acknowledged = [writer.stdout.readline().strip() for _ in range(objects)]
        writer.send_signal(signal.SIGKILL)
        acknowledged.extend(line.strip() for line in writer.stdout if line.endswith("\n"))
    assert writer.returncode == -signal.SIGKILL
    return acknowledged


async def test_a_file_that_is_created_has_no_other_name_before(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    assert await store.create("a/b", b"one")
    assert not await store.create("a/b", b"two")
    assert sorted(item.name for item in tmp_path.iterdir()) == ["a"]
    assert [item.name for item in (tmp_path / "a").iterdir()] == ["b"]
    await store.close()


async def test_created_and_replaced_files_are_open_to_the_same_people(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    await store.create("created", b"one")
    await store.replace("replaced", b"one")
    plain = tmp_path / "plain"
    plain.write_bytes(b"one")
    modes = {(tmp_path / name).stat().st_mode for name in ("created", "replaced", "plain")}
    assert modes == {plain.stat().st_mode}
    await store.close()


async def test_a_draft_is_not_listed(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    await store.create("a/b", b"")
    await store.replace("a/b", b"")
    (tmp_path / ".aside" / "left-by-a-crash").write_bytes(b"half")
    assert await store.list("") == ["a/b"]
    assert await store.folders("") == ["a"]
    await store.close()


async def test_finished_writers_leave_no_drafts(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    for _ in range(2):
        await store.create("a", b"")
        await store.replace("b", b"")
    assert list((tmp_path / ".aside").iterdir()) == []
    await store.close()


async def test_a_folder_goes_with_its_last_object(tmp_path: Path) -> None:
    store, other = FileStore(tmp_path), FileStore(tmp_path)
    await store.create("x/a/b/1", b"")
    await other.create("x/c", b"")
    await other.delete("x/a/b/1")
    assert await store.folders("x/") == []
    await other.delete("x/c")
    assert await store.folders("") == []
    assert await store.create("x/a/b/1", b"")
    await store.close()
    await other.close()


async def test_the_drafts_folder_is_not_a_key(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    with pytest.raises(ValueError, match=r"it keeps \.aside for itself"):
        await store.create(".aside/a", b"")
    await store.close()


async def test_a_foreign_file_is_not_listed(tmp_path: Path) -> None:
    (tmp_path / "outside").write_bytes(b"secret")
    store = FileStore(tmp_path / "store")
    await store.create("a", b"")
    for request in (store.list("../"), store.folders("../"), store.list("/"), store.folders("/")):
        with pytest.raises(ValueError, match="is not a key of a store"):
            await request
    await store.close()


async def test_objects_are_found_again_by_another_store_in_the_same_folder(tmp_path: Path) -> None:
    first, second = FileStore(tmp_path / "deep" / "store"), FileStore(tmp_path / "deep" / "store")
    assert await first.create("a/b", b"one")
    assert not await second.create("a/b", b"two")
    assert await second.read("a/b") == b"one"
    await first.close()
    await second.close()


async def test_a_root_inside_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    store = FileStore(tmp_path / "file" / "store")
    with pytest.raises(StoreRefused, match="give it a folder that may be written to"):
        await store.create("a", b"")
    await store.close()


async def test_an_exhausted_machine_is_unavailable(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    await store.create("a", b"one")
    with no_more_files():
        with pytest.raises(StoreUnavailable, match="Too many open files"):
            await store.create("b", b"two")
        with pytest.raises(StoreUnavailable, match="Too many open files"):
            await store.read("a")
    assert await store.create("b", b"two")
    await store.close()


@contextmanager
def no_more_files() -> Iterator[None]:
    """Forbid this process to open more files."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.open(os.devnull, os.O_RDONLY)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
