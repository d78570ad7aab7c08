"""Facts and instructions of a workspace, and files that the worker must not read."""

import os
import subprocess
from pathlib import Path

import pytest

from perdure.activities.workspace.context_files import (
    MAX_LISTED_ENTRIES,
    collect_facts,
    read_inside,
    read_instructions,
)
from perdure.agent.knowledge.recall import MAX_PART_BYTES

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


def test_a_pipe_does_not_make_the_worker_wait(workspace: Path) -> None:
    os.mkfifo(workspace / "AGENTS.md")
    assert read_instructions(workspace, workspace, NAMES) == []


def test_the_same_instructions_are_shown_once(workspace: Path) -> None:
    (workspace / "AGENTS.md").write_text("Use tabs.\n")
    (workspace / "CLAUDE.md").symlink_to("AGENTS.md")
    (workspace / "GEMINI.md").write_text("Use tabs.")
    (workspace / ".cursorrules").write_text("Use spaces.")
    instructions = read_instructions(workspace, workspace, (*NAMES, "GEMINI.md", ".cursorrules"))
    assert [item.name for item in instructions] == ["AGENTS.md", ".cursorrules"]


@pytest.mark.parametrize("raw", [b"\0binary", b"", b"  \n"])
def test_a_binary_file_is_no_instruction(workspace: Path, raw: bytes) -> None:
    (workspace / "AGENTS.md").write_bytes(raw)
    assert read_instructions(workspace, workspace, NAMES) == []


def test_instructions_from_elsewhere_are_not_read(workspace: Path) -> None:
    (workspace / "AGENTS.md").symlink_to("../secret")
    assert read_instructions(workspace, workspace, (*NAMES, "../secret", "a\0b")) == []


def test_long_instructions_are_read_only_in_part(workspace: Path) -> None:
    (workspace / "AGENTS.md").write_text("x" * 1_000_000)
    [file] = read_instructions(workspace, workspace, NAMES)
    assert len(file.text) == MAX_PART_BYTES + 1


def test_an_empty_workspace_has_no_facts(workspace: Path) -> None:
    assert collect_facts(workspace, DAY) is None
    assert collect_facts(workspace / "gone", DAY) is None


def test_the_facts_of_a_workspace_list_its_entries(workspace: Path) -> None:
    (workspace / "src").mkdir()
    (workspace / ".hidden").touch()
    (workspace / "link").symlink_to("src")
    (workspace / os.fsdecode(b"\xff")).mkdir()
    facts = collect_facts(workspace, DAY)
    assert facts is not None
    assert facts.entries == ("link", "src/", "\ufffd/")
    assert (facts.directory, facts.day, facts.more_entries, facts.git) == (
        str(workspace),
        DAY,
        0,
        None,
    )


def test_only_some_of_many_entries_are_listed(workspace: Path) -> None:
    for number in range(MAX_LISTED_ENTRIES + 5):
        (workspace / f"{number:03}").touch()
    facts = collect_facts(workspace, DAY)
    assert facts is not None
    assert (len(facts.entries), facts.more_entries) == (MAX_LISTED_ENTRIES, 5)


def git_fact(workspace: Path) -> str | None:
    facts = collect_facts(workspace, DAY)
    assert facts is not None
    return facts.git


def test_a_repository_tells_its_branch_and_its_last_commit(workspace: Path) -> None:
    git(workspace, "init", "-q", "-b", "feature/x")
    assert git_fact(workspace) == "branch feature/x"
    git(workspace, "commit", "-q", "--allow-empty", "-m", "Begin: it all")
    commit = git(workspace, "rev-parse", "HEAD")
    assert git_fact(workspace) == f"branch feature/x, last commit {commit[:8]}: Begin: it all"
    git(workspace, "checkout", "-q", "--detach")
    assert git_fact(workspace) == f"detached at {commit[:8]}"


def test_a_clone_tells_no_address(workspace: Path, tmp_path: Path) -> None:
    git(workspace, "init", "-q", "-b", "main")
    git(workspace, "commit", "-q", "--allow-empty", "-m", "Begin")
    git(workspace, "clone", "-q", str(workspace), str(tmp_path / "clone"))
    commit = git(workspace, "rev-parse", "HEAD")
    assert git_fact(tmp_path / "clone") == f"branch main, last commit {commit[:8]}"


@pytest.mark.parametrize("head", [b"", b"\xff", b"ref: refs/heads/../../../../secret", b"a\0b"])
def test_a_broken_repository_is_one_too(workspace: Path, head: bytes) -> None:
    (workspace / ".git").mkdir()
    (workspace / ".git/HEAD").write_bytes(head)
    fact = git_fact(workspace)
    assert fact is not None
    assert "commit" not in fact


def test_a_worktree_is_a_repository(workspace: Path) -> None:
    (workspace / ".git").write_text("gitdir: /elsewhere")
    assert git_fact(workspace) == "a repository"
