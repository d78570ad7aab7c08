"""A disk that is full: a small file system of its own, which only root can make."""

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure.embedded.discovery import await_stack
from perdure.embedded.errors import DiskFull
from perdure.embedded.stack import Stack
from tests.embedded.processes import SLEEP_COMMAND, is_alive, wait_until
from tests.embedded.test_stack import bucket_of


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of 64 MB."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(tmp_path)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("NOT TESTED: only root may mount the small disk of this test")
    yield tmp_path
    subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)


def fill(disk: Path) -> Path:
    """Fill the disk to its last byte, and return the file that does."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(65536))
        except OSError:
            return ballast


async def write(stack: Stack, key: str) -> bool:
    """Write an object; return whether the store took it."""
    bucket = bucket_of(stack.info)
    try:
        await asyncio.to_thread(bucket.put_object, Key=key, Body=key.encode() * 10_000)
    except Exception:
        return False
    return True


@pytest.mark.long
async def test_a_stack_whose_disk_was_full_goes_on_with_all_that_was_written(
    small_disk: Path,
) -> None:
    lines: list[str] = []
    folder = small_disk / "data"
    stack = await Stack.start(folder, ui=False, worker=SLEEP_COMMAND, report=lines.append)
    written = [key for key in ("before-1", "before-2") if await write(stack, key)]
    ballast = fill(small_disk)
    await wait_until(lambda: len(lines) == 1)
    written += [key for key in ("full-1", "full-2") if await write(stack, key)]
    ballast.unlink()
    await wait_until(lambda: len(lines) == 2)
    info = await await_stack(folder)
    written += [key for key in ("after-1", "after-2") if await write(stack, key)]
    bodies = {key: bucket_of(stack.info).Object(key).get()["Body"].read() for key in written}
    await stack.stop()
    assert f"The disk of {folder} is full" in lines[0]
    assert "Nothing is lost" in lines[0]
    assert "has room again" in lines[1]
    assert info is not None
    assert {"before-1", "before-2", "after-1", "after-2"} <= {*written}
    assert bodies == {key: key.encode() * 10_000 for key in written}
    assert len(lines) == 2, "that the servers were started again is no news"
    assert not is_alive(info.pids["weed"])


@pytest.mark.long
async def test_a_stack_does_not_start_on_a_full_disk_and_says_what_it_needs(
    small_disk: Path,
) -> None:
    ballast = fill(small_disk)
    with pytest.raises(DiskFull, match=r"is full: 0\.0 MB are free, 24 MB are needed"):
        await Stack.start(small_disk / "data", ui=False, worker=SLEEP_COMMAND)
    ballast.unlink()
    stack = await Stack.start(small_disk / "data", ui=False, worker=SLEEP_COMMAND)
    await stack.stop()
