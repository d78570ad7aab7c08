"""What a workspace says of itself, and what it must not make the worker read."""

import os
import subprocess
from pathlib import Path

import pytest

from activities.workspace_files import (
    MOST_LISTED,
    facts_of,
    instructions_in,
    opened,
    read_inside,
)
from agent.recall import LONGEST_PART

NAMES = ("AGENTS.md", "CLAUDE.md")
DAY = "2026-03-01"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    (tmp_path / "secret").write_text("secret")
    return folder


def git(workspace: Path, *command: str) -> str:
    somebody = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org")
    return subprocess.run(
        ["git", "-C", workspace, *somebody, *command],
        env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()


def test_links_are_followed_only_inside(workspace: Path) -> None:
    (workspace / "in").write_text("inside")
    (workspace / "a").symlink_to("in")
    (workspace / "b").symlink_to("../secret")
    (workspace / "loop").symlink_to("loop")
    assert read_inside(workspace, workspace / "a", 3) == b"ins"
    for name in ("b", "../secret", "loop", "gone", "."):
        with pytest.raises((OSError, RuntimeError)):
            read_inside(workspace, workspace / name, 100)


@pytest.mark.parametrize("name", ["folder/file", "folder"])
def test_what_has_become_a_link_since_it_was_looked_at_is_not_opened(
    workspace: Path, name: str
) -> None:
    outside = workspace.parent / "outside"
    outside.mkdir()
    (outside / "file").touch()
    (workspace / "folder").symlink_to(outside)
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        opened(workspace, workspace / name)


def test_a_pipe_does_not_make_the_worker_wait(workspace: Path) -> None:
    os.mkfifo(workspace / "AGENTS.md")
    assert instructions_in(workspace, workspace, NAMES) == []


def test_the_same_instructions_are_shown_once(workspace: Path) -> None:
    (workspace / "AGENTS.md").write_text("Use tabs.\n")
    (workspace / "CLAUDE.md").symlink_to("AGENTS.md")
    (workspace / "GEMINI.md").write_text("Use tabs.")
    (workspace / ".cursorrules").write_text("Use spaces.")
    found = instructions_in(workspace, workspace, (*NAMES, "GEMINI.md", ".cursorrules"))
    assert [one.name for one in found] == ["AGENTS.md", ".cursorrules"]


@pytest.mark.parametrize("raw", [b"\0binary", b"", b"  \n"])
def test_what_is_no_text_is_no_instruction(workspace: Path, raw: bytes) -> None:
    (workspace / "AGENTS.md").write_bytes(raw)
    assert instructions_in(workspace, workspace, NAMES) == []


def test_instructions_from_elsewhere_are_not_read(workspace: Path) -> None:
    (workspace / "AGENTS.md").symlink_to("../secret")
    assert instructions_in(workspace, workspace, (*NAMES, "../secret", "a\0b")) == []


def test_of_long_instructions_no_more_is_read_than_can_be_shown(workspace: Path) -> None:
    (workspace / "AGENTS.md").write_text("x" * 1_000_000)
    [found] = instructions_in(workspace, workspace, NAMES)
    assert len(found.text) == LONGEST_PART + 1


def test_an_empty_workspace_is_not_worth_a_word(workspace: Path) -> None:
    assert facts_of(workspace, DAY) is None
    assert facts_of(workspace / "gone", DAY) is None


def test_what_is_in_a_workspace(workspace: Path) -> None:
    (workspace / "src").mkdir()
    (workspace / ".hidden").touch()
    (workspace / "link").symlink_to("src")
    (workspace / os.fsdecode(b"\xff")).mkdir()
    facts = facts_of(workspace, DAY)
    assert facts is not None
    assert facts.entries == ("link", "src/", "\ufffd/")
    assert (facts.directory, facts.day, facts.more, facts.git) == (str(workspace), DAY, 0, None)


def test_of_many_entries_some_are_named(workspace: Path) -> None:
    for number in range(MOST_LISTED + 5):
        (workspace / f"{number:03}").touch()
    facts = facts_of(workspace, DAY)
    assert facts is not None
    assert (len(facts.entries), facts.more) == (MOST_LISTED, 5)


def told(workspace: Path) -> str | None:
    facts = facts_of(workspace, DAY)
    assert facts is not None
    return facts.git


def test_a_repository_tells_its_branch_and_its_last_commit(workspace: Path) -> None:
    git(workspace, "init", "-q", "-b", "feature/x")
    assert told(workspace) == "branch feature/x"
    git(workspace, "commit", "-q", "--allow-empty", "-m", "Begin: it all")
    commit = git(workspace, "rev-parse", "HEAD")
    assert told(workspace) == f"branch feature/x, last commit {commit[:8]}: Begin: it all"
    git(workspace, "checkout", "-q", "--detach")
    assert told(workspace) == f"detached at {commit[:8]}"


def test_a_clone_tells_no_address(workspace: Path, tmp_path: Path) -> None:
    git(workspace, "init", "-q", "-b", "main")
    git(workspace, "commit", "-q", "--allow-empty", "-m", "Begin")
    git(workspace, "clone", "-q", str(workspace), str(tmp_path / "clone"))
    commit = git(workspace, "rev-parse", "HEAD")
    assert told(tmp_path / "clone") == f"branch main, last commit {commit[:8]}"


@pytest.mark.parametrize("head", [b"", b"\xff", b"ref: refs/heads/../../../../secret", b"a\0b"])
def test_a_broken_repository_is_one_too(workspace: Path, head: bytes) -> None:
    (workspace / ".git").mkdir()
    (workspace / ".git/HEAD").write_bytes(head)
    said = told(workspace)
    assert said is not None
    assert "commit" not in said


def test_a_worktree_is_a_repository(workspace: Path) -> None:
    (workspace / ".git").write_text("gitdir: /elsewhere")
    assert told(workspace) == "a repository"
