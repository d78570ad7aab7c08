"""A root worker's workspaces belong to the user that its tools are."""

import os
from pathlib import Path

import pytest

from sandbox.owner import give
from sandbox.sandbox import UID, Unusable
from sandbox.spot import Spot

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="NOT CHECKED: only root gives files away")
OTHER = 12345


def owners(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): path.lstat().st_uid for path in folder.rglob("*")}


@only_root
def test_what_is_the_workers_is_given_and_nothing_else(tmp_path: Path) -> None:
    outside, workspace = tmp_path / "outside", tmp_path / "workspace"
    (workspace / "a/b").mkdir(parents=True)
    outside.mkdir()
    for file in (outside / "file", outside / "shared", workspace / "a/mine", workspace / "theirs"):
        file.touch()
    os.chown(workspace / "theirs", OTHER, OTHER)
    (workspace / "shared").hardlink_to(outside / "shared")
    (workspace / "link").symlink_to(outside / "file")
    (workspace / "folder").symlink_to(outside)
    give(workspace)
    own = {"a": UID, "a/b": UID, "a/mine": UID}
    left = {"theirs": OTHER, "shared": 0, "link": 0, "folder": 0}
    assert owners(workspace) == {**own, **left}
    assert owners(outside) == {"file": 0, "shared": 0}
    assert workspace.stat().st_uid == UID


@only_root
@pytest.mark.parametrize("folder", ["/", "/usr", "/etc", "/root", "/home", "/tmp", "/proc/self/.."])
def test_the_system_is_not_given_away(folder: str) -> None:
    before = Path(folder).stat().st_uid
    with pytest.raises(Unusable, match="belongs to the system"):
        give(Path(folder))
    assert Path(folder).stat().st_uid == before


@only_root
def test_what_the_worker_makes_belongs_to_whom_the_workspace_does(tmp_path: Path) -> None:
    give(tmp_path)
    folder, file = Spot(tmp_path, tmp_path / "a"), Spot(tmp_path, tmp_path / "a/f")
    folder.make_folder()
    file.put(file.staged(b"here", 0o600))
    assert owners(tmp_path) == {"a": UID, "a/f": UID}
    assert file.mode() == 0o600
