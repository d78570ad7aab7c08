"""What was found in a workspace is done there, or nowhere."""

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sandbox import beneath
from sandbox.spot import Spot


@pytest.fixture
def swapped(tmp_path: Path) -> Iterator[Path]:
    """A workspace in which `a` leads outside, where it was a folder a moment ago."""
    for name in ("outside", "workspace"):
        (tmp_path / name).mkdir()
    (tmp_path / "outside/file").write_text("theirs")
    (tmp_path / "workspace/a").symlink_to(tmp_path / "outside")
    (tmp_path / "workspace/link").symlink_to(tmp_path / "outside/file")
    yield tmp_path / "workspace"
    assert {path.name: path.read_text() for path in (tmp_path / "outside").iterdir()} == {
        "file": "theirs"
    }


WAYS: dict[str, Callable[[Spot], object]] = {
    "stat": Spot.stat,
    "exists": Spot.exists,
    "opened": Spot.opened,
    "read": lambda spot: spot.read(10),
    "make_folder": Spot.make_folder,
    "remove_folder": Spot.remove_folder,
    "remove": Spot.remove,
    "staged": lambda spot: spot.staged(b"ours", None),
    "put": lambda spot: spot.put(Spot(spot.root, spot.root / "a/other")),
}


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_done_behind_a_symlink(swapped: Path, way: str) -> None:
    with pytest.raises(OSError) as raised:  # noqa: PT011 - which one it is depends on the kernel
        WAYS[way](Spot(swapped, swapped / "a/file"))
    assert raised.value.errno in (errno.ELOOP, errno.ENOTDIR, errno.EXDEV)


def test_a_link_is_seen_and_not_followed(swapped: Path) -> None:
    spot = Spot(swapped, swapped / "link")
    assert spot.exists()
    assert not spot.is_file()
    assert not Spot(swapped, swapped / "a").is_dir()
    with pytest.raises(OSError, match="symbolic links"):
        spot.read(10)


@pytest.mark.parametrize("names", [(), ("a",), ("a", "b"), ("a", "b", "c")])
def test_name_by_name_it_is_the_same_as_at_once(tmp_path: Path, names: tuple[str, ...]) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/c").write_text("here")
    top = os.open(tmp_path, os.O_PATH)
    walked = beneath._walked(top, names, os.O_RDONLY)
    at_once = beneath.opened(tmp_path, tmp_path.joinpath(*names), os.O_RDONLY)
    assert os.path.samestat(os.fstat(walked), os.fstat(at_once))
    for descriptor in (top, walked, at_once):
        os.close(descriptor)


@pytest.mark.parametrize("names", [("a", "file"), ("link",)])
def test_name_by_name_no_symlink_is_followed(swapped: Path, names: tuple[str, ...]) -> None:
    top = os.open(swapped, os.O_PATH)
    with pytest.raises(OSError, match=r"symbolic links|Not a directory"):
        beneath._walked(top, names, os.O_RDONLY)
    os.close(top)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    spot = Spot(tmp_path, tmp_path / "pipe")
    assert not spot.is_file()
    assert spot.read(10) == (0, b"")
