"""A root worker's workspaces belong to the tools' user."""

import os
from pathlib import Path

import pytest

from perdure.sandbox.safe_path import SafePath
from perdure.sandbox.sandbox import TOOLS_UID, SandboxUnusable
from perdure.sandbox.system import chown_workspace

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="NOT CHECKED: only root gives files away")
OTHER = 12345


def owners_of(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): path.lstat().st_uid for path in folder.rglob("*")}


@only_root
def test_only_the_workers_own_files_change_their_owner(tmp_path: Path) -> None:
    outside, workspace = tmp_path / "outside", tmp_path / "workspace"
    (workspace / "a/b").mkdir(parents=True)
    outside.mkdir()
    for file in (outside / "file", outside / "shared", workspace / "a/mine", workspace / "theirs"):
        file.touch()
    os.chown(workspace / "theirs", OTHER, OTHER)
    (workspace / "shared").hardlink_to(outside / "shared")
    (workspace / "link").symlink_to(outside / "file")
    (workspace / "folder").symlink_to(outside)
    chown_workspace(workspace)
    own = {"a": TOOLS_UID, "a/b": TOOLS_UID, "a/mine": TOOLS_UID}
    left = {"theirs": OTHER, "shared": 0, "link": 0, "folder": 0}
    assert owners_of(workspace) == {**own, **left}
    assert owners_of(outside) == {"file": 0, "shared": 0}
    assert workspace.stat().st_uid == TOOLS_UID


@only_root
@pytest.mark.parametrize("folder", ["/", "/usr", "/etc", "/root", "/home", "/tmp", "/proc/self/.."])
def test_the_system_is_not_given_away(folder: str) -> None:
    before = Path(folder).stat().st_uid
    with pytest.raises(SandboxUnusable, match="belongs to the system"):
        chown_workspace(Path(folder))
    assert Path(folder).stat().st_uid == before


@only_root
def test_new_files_get_the_owner_of_the_workspace(tmp_path: Path) -> None:
    chown_workspace(tmp_path)
    folder, file = SafePath(tmp_path, tmp_path / "a"), SafePath(tmp_path, tmp_path / "a/f")
    folder.make_folder()
    file.commit(file.stage(b"here", 0o600))
    assert owners_of(tmp_path) == {"a": TOOLS_UID, "a/f": TOOLS_UID}
    assert file.mode() == 0o600
