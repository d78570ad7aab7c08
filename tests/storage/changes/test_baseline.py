"""A directory of the user's is compared with what it was when a turn began."""

import os
import sqlite3
from pathlib import Path

import pytest

from perdure.storage.changes.baseline import (
    close_baseline,
    find_changes,
    note_first_action,
    open_baseline,
)
from perdure.storage.changes.record import ChangedFile

CONVERSATION = "01a20000-0000-7000-8000-000000000000"
OTHER = "01a20000-0000-7000-8000-000000000001"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "baselines"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    (project / "src/a.py").write_text("one\n")
    (project / "gone").write_text("x\n")
    return project


def changes_of(folder: Path, project: Path, name: str = CONVERSATION) -> dict[str, ChangedFile]:
    found = find_changes(folder, project, name)
    assert found is not None
    return {file.path: file for file in found[1]}


def begin(folder: Path, project: Path, name: str = CONVERSATION, seq: int = 5) -> None:
    open_baseline(folder, project, name)
    note_first_action(folder, project, name, seq)


def test_added_changed_and_removed_files_are_found_with_both_texts(
    folder: Path, project: Path
) -> None:
    begin(folder, project)
    (project / "src/a.py").write_text("two\n")
    (project / "new").write_text("new\n")
    (project / "gone").unlink()
    (project / "bytes").write_bytes(b"\0\1")
    (project / "link").symlink_to("new")
    (project / ".git").mkdir()
    (project / ".git/index").write_text("of git")
    changed = changes_of(folder, project)
    assert list(changed) == ["bytes", "gone", "link", "new", "src/a.py"]
    edited = changed["src/a.py"]
    assert edited.before is not None
    assert edited.before.text == "one\n"
    assert edited.after is not None
    assert edited.after.text == "two\n"
    assert changed["new"].before is None
    assert changed["gone"].after is None
    assert changed["bytes"].after is not None
    assert changed["bytes"].after.text is None
    assert changed["link"].after is not None
    assert changed["link"].after.reason == "a symlink to new"


def test_a_rewritten_file_with_the_same_bytes_is_not_changed(folder: Path, project: Path) -> None:
    begin(folder, project)
    (project / "src/a.py").unlink()
    (project / "src/a.py").write_text("one\n")
    os.utime(project / "src/a.py", (1, 1))
    assert changes_of(folder, project) == {}


def test_a_change_within_one_tick_of_the_clock_is_found(folder: Path, project: Path) -> None:
    """The inode, the size and the time may be the same."""
    status = (project / "src/a.py").stat()
    begin(folder, project)
    with (project / "src/a.py").open("r+") as file:
        file.write("two\n")
    os.utime(project / "src/a.py", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert list(changes_of(folder, project)) == ["src/a.py"]


def test_a_turn_that_goes_on_after_a_restart_keeps_its_baseline(
    folder: Path, project: Path
) -> None:
    begin(folder, project, seq=5)
    (project / "new").touch()
    begin(folder, project, seq=9)
    found = find_changes(folder, project, CONVERSATION)
    assert found is not None
    assert found[0] == 5
    assert [file.path for file in found[1]] == ["new"]


def test_a_turn_without_an_action_has_no_changes(folder: Path, project: Path) -> None:
    open_baseline(folder, project, CONVERSATION)
    (project / "by the user").touch()
    assert find_changes(folder, project, CONVERSATION) is None
    begin(folder, project)
    assert changes_of(folder, project) == {}, "what the user did before is not the agent's"


def test_two_conversations_in_a_directory_have_their_own_baselines(
    folder: Path, project: Path
) -> None:
    begin(folder, project)
    (project / "src/a.py").write_text("two\n")
    begin(folder, project, OTHER)
    (project / "src/a.py").write_text("three\n")
    close_baseline(folder, project, OTHER)
    edited = changes_of(folder, project)["src/a.py"]
    assert edited.before is not None
    assert edited.before.text == "one\n"


def test_texts_that_no_turn_needs_are_forgotten(folder: Path, project: Path) -> None:
    begin(folder, project)
    (project / "src/a.py").write_text("two\n")
    changes_of(folder, project)
    close_baseline(folder, project, CONVERSATION)
    (database,) = folder.glob("*.sqlite")
    with sqlite3.connect(database) as connection:
        count = connection.execute("SELECT count(*) FROM texts").fetchone()
        trees = connection.execute("SELECT name FROM trees").fetchall()
    connection.close()
    assert (count, trees) == ((2,), [("",)])


def test_nothing_is_written_to_the_directory_itself(folder: Path, project: Path) -> None:
    before = sorted(project.parent.rglob("*"))
    begin(folder, project)
    changes_of(folder, project)
    left = [path for path in sorted(project.parent.rglob("*")) if folder not in path.parents]
    assert [path for path in left if path != folder] == before
    assert folder.stat().st_mode & 0o077 == 0
