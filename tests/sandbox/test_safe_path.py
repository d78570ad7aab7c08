"""Operations on a safe path stay in the workspace, or fail."""

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from perdure.sandbox import safe_path
from perdure.sandbox.safe_path import SafePath


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


WAYS: dict[str, Callable[[SafePath], object]] = {
    "stat": SafePath.stat,
    "exists": SafePath.exists,
    "opened": SafePath.open,
    "read": lambda spot: spot.read(10),
    "make_folder": SafePath.make_folder,
    "remove_folder": SafePath.remove_folder,
    "remove": SafePath.remove,
    "staged": lambda spot: spot.stage(b"ours", None),
    "put": lambda spot: spot.commit(SafePath(spot.root, spot.root / "a/other")),
}


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_done_behind_a_symlink(swapped: Path, way: str) -> None:
    with pytest.raises(OSError) as raised:  # noqa: PT011 - which one it is depends on the kernel
        WAYS[way](SafePath(swapped, swapped / "a/file"))
    assert raised.value.errno in (errno.ELOOP, errno.ENOTDIR, errno.EXDEV)


def test_no_operation_leaves_a_descriptor_open(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("ours")
    descriptors = Path("/proc/self/fd")
    before = len(list(descriptors.iterdir()))
    SafePath(tmp_path, tmp_path / "folder").make_folder()
    SafePath(tmp_path, tmp_path / "folder").remove_folder()
    assert SafePath(tmp_path, tmp_path / "file").read(10) == (4, b"ours")
    SafePath(tmp_path, tmp_path / "file").remove()
    assert len(list(descriptors.iterdir())) == before
    assert list(tmp_path.iterdir()) == []


def test_a_link_is_seen_and_not_followed(swapped: Path) -> None:
    spot = SafePath(swapped, swapped / "link")
    assert spot.exists()
    assert not spot.is_file()
    assert not SafePath(swapped, swapped / "a").is_dir()
    with pytest.raises(OSError, match="symbolic links"):
        spot.read(10)


@pytest.mark.parametrize("names", [(), ("a",), ("a", "b"), ("a", "b", "c")])
def test_name_by_name_it_is_the_same_as_at_once(tmp_path: Path, names: tuple[str, ...]) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/c").write_text("here")
    top = os.open(tmp_path, os.O_PATH)
    walked = safe_path._open_name_by_name(top, names, os.O_RDONLY)
    at_once = safe_path.open_beneath(tmp_path, tmp_path.joinpath(*names), os.O_RDONLY)
    assert os.path.samestat(os.fstat(walked), os.fstat(at_once))
    for descriptor in (top, walked, at_once):
        os.close(descriptor)


@pytest.mark.parametrize("names", [("a", "file"), ("link",)])
def test_name_by_name_no_symlink_is_followed(swapped: Path, names: tuple[str, ...]) -> None:
    top = os.open(swapped, os.O_PATH)
    with pytest.raises(OSError, match=r"symbolic links|Not a directory"):
        safe_path._open_name_by_name(top, names, os.O_RDONLY)
    os.close(top)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    spot = SafePath(tmp_path, tmp_path / "pipe")
    assert not spot.is_file()
    assert spot.read(10) == (0, b"")
