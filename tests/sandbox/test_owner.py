"""Commands write a root worker's workspaces, and no directory of a user changes its owner."""

import os
import subprocess
from pathlib import Path

import pytest

from perdure.sandbox.owners import prepare_owner
from perdure.sandbox.safe_path import SafePath
from perdure.sandbox.sandbox import TOOLS_UID, Access, Sandbox, SandboxUnusable
from tests.sandbox.test_probes import require_sandbox

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="NOT CHECKED: only root gives files away")
OTHER = 12345
GIT = ("git", "-c", "user.name=A", "-c", "user.email=a@example.org")
IDENTITY = (
    "export GIT_AUTHOR_NAME=B GIT_AUTHOR_EMAIL=b@x GIT_COMMITTER_NAME=B GIT_COMMITTER_EMAIL=b@x"
)


def owners_of(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): path.lstat().st_uid for path in folder.rglob("*")}


def modes_of(folder: Path) -> dict[str, tuple[int, int, int]]:
    status = {path: path.lstat() for path in (folder, *folder.rglob("*"))}
    return {str(path): (s.st_uid, s.st_gid, s.st_mode) for path, s in status.items()}


def run_in(sandbox: Sandbox, workspace: Path, script: str) -> str:
    """Run a script in the sandbox; return what it printed."""
    sandbox.prepare(workspace)
    launch = sandbox.launch(["/bin/sh", "-c", script], Access(workspace), os.environ)
    with launch.cleanup:
        done = subprocess.run(
            launch.argv,
            env=launch.environment,
            pass_fds=launch.pass_fds,
            cwd=workspace,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    return done.stdout + done.stderr


def run_git(folder: Path, *arguments: str, user: int | None = None) -> str:
    command = [*GIT, "-C", str(folder), *arguments]
    environment = {"HOME": "/nonexistent", "PATH": os.environ["PATH"]}
    return subprocess.run(
        command, check=True, capture_output=True, text=True, user=user, group=user, env=environment
    ).stdout


def make_project(folder: Path, owner: int) -> Path:
    """Make a repository of `owner` with one commit, in a folder that all may pass."""
    for parent in (folder, *folder.parents):
        if parent.stat().st_uid == os.geteuid() and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o011)
    project = folder / "project"
    project.mkdir()
    os.chown(project, owner, owner)
    (project / "a.py").write_text("one\n")
    (project / "a.py").chmod(0o640)
    os.chown(project / "a.py", owner, owner)
    run_git(project, "init", "-q", user=owner)
    run_git(project, "add", ".", user=owner)
    run_git(project, "commit", "-qm", "first", user=owner)
    return project


@pytest.mark.long
@only_root
@pytest.mark.parametrize("owner", [0, OTHER])
@pytest.mark.parametrize("name", ["bubblewrap", "uid"])
def test_git_works_before_inside_and_after_in_a_users_directory(
    tmp_path: Path, name: str, owner: int
) -> None:
    sandbox = require_sandbox(name).sandbox
    assert sandbox is not None
    project = make_project(tmp_path, owner)
    before = modes_of(project / "a.py")
    script = (
        f"{IDENTITY}; id -u; git status --porcelain; echo two >> a.py; mkdir new; "
        "echo x > new/b.py; git add -A && git commit -qm second && git log --format=%s"
    )
    printed = run_in(sandbox, project, script).split()
    assert printed == [str(TOOLS_UID), "second", "first"]
    assert modes_of(project / "a.py") == before
    assert set(owners_of(project).values()) == {owner}
    assert {path.lstat().st_gid for path in project.rglob("*")} == {owner}
    assert run_git(project, "status", "--porcelain", user=owner) == ""
    (project / "new/b.py").write_text("y\n")
    assert run_git(project, "commit", "-qam", "third", user=owner) == ""


@pytest.mark.skipif(os.geteuid() == 0, reason="NOT CHECKED: root has another sandbox")
@pytest.mark.parametrize("name", ["bubblewrap", "landlock"])
def test_git_works_in_an_ordinary_users_directory(tmp_path: Path, name: str) -> None:
    sandbox = require_sandbox(name).sandbox
    assert sandbox is not None
    project = make_project(tmp_path, os.geteuid())
    script = f"{IDENTITY}; echo two >> a.py; git commit -qam second && git log --format=%s"
    assert run_in(sandbox, project, script).split() == ["second", "first"]
    assert set(owners_of(project).values()) == {os.geteuid()}
    assert run_git(project, "status", "--porcelain") == ""


@only_root
@pytest.mark.parametrize("name", ["bubblewrap", "uid"])
def test_what_others_own_in_the_directory_stays_closed(tmp_path: Path, name: str) -> None:
    sandbox = require_sandbox(name).sandbox
    assert sandbox is not None
    project = make_project(tmp_path, OTHER)
    (project / "secret").write_text("of root\n")
    (project / "secret").chmod(0o600)
    before = modes_of(project)
    printed = run_in(
        sandbox, project, "cat secret; echo x >> secret; chmod 666 secret; chown 0 a.py"
    )
    assert "of root" not in printed
    assert (project / "secret").read_text() == "of root\n"
    assert modes_of(project) == before


@only_root
def test_a_directory_whose_owner_cannot_be_mapped_is_refused_and_unchanged() -> None:
    sandbox = require_sandbox("uid").sandbox
    assert sandbox is not None
    # The kernel maps no owners in its own file systems.
    folder = Path("/sys/kernel")
    before = folder.stat()
    with pytest.raises(SandboxUnusable, match=r"cannot be mapped.* Nothing was changed\. Run the"):
        sandbox.prepare(folder)
    assert folder.stat()[:6] == before[:6]


@only_root
def test_in_an_own_folder_only_the_workers_files_change_their_owner(tmp_path: Path) -> None:
    outside, workspace = tmp_path / "outside", tmp_path / "workspace"
    (workspace / "a/b").mkdir(parents=True)
    outside.mkdir()
    for file in (outside / "file", outside / "shared", workspace / "a/mine", workspace / "theirs"):
        file.touch()
    os.chown(workspace / "theirs", OTHER, OTHER)
    (workspace / "shared").hardlink_to(outside / "shared")
    (workspace / "link").symlink_to(outside / "file")
    (workspace / "folder").symlink_to(outside)
    prepare_owner(workspace, tmp_path)
    own = {"a": TOOLS_UID, "a/b": TOOLS_UID, "a/mine": TOOLS_UID}
    left = {"theirs": OTHER, "shared": 0, "link": 0, "folder": 0}
    assert owners_of(workspace) == {**own, **left}
    assert owners_of(outside) == {"file": 0, "shared": 0}
    assert workspace.stat().st_uid == TOOLS_UID


@only_root
@pytest.mark.parametrize("folder", ["/", "/usr", "/etc", "/root", "/home", "/tmp", "/proc/self/.."])
def test_the_system_is_no_workspace(folder: str, tmp_path: Path) -> None:
    before = Path(folder).stat().st_uid
    with pytest.raises(SandboxUnusable, match="belongs to the system"):
        prepare_owner(Path(folder), tmp_path)
    assert Path(folder).stat().st_uid == before


@only_root
def test_new_files_of_file_tools_get_the_owner_of_the_workspace(tmp_path: Path) -> None:
    os.chown(tmp_path, OTHER, OTHER)
    folder, file = SafePath(tmp_path, tmp_path / "a"), SafePath(tmp_path, tmp_path / "a/f")
    folder.make_folder()
    file.commit(file.stage(b"here", 0o600))
    assert owners_of(tmp_path) == {"a": OTHER, "a/f": OTHER}
    assert file.mode() == 0o600
