"""Files are found where git would look for them, and nowhere outside of the workspace."""

import os
from pathlib import Path

import pytest

from tests.tools.searching import fill, write
from tools.searching import walk
from tools.searching.walk import Search, files, newest


def seen(root: Path, start: str = "") -> set[str]:
    return {found.path for found in files(root, root / start, Search())}


def test_every_file_is_found_but_what_version_control_keeps_for_itself(workspace: Path) -> None:
    fill(workspace, a="", b__c="", b__d__e="")
    for name in (".hidden", ".github/workflow.yml", ".git/config", "b/.hg/x", ".svn/x"):
        write(workspace, name, "")
    assert seen(workspace) == {"a", "b/c", "b/d/e", ".hidden", ".github/workflow.yml"}
    assert seen(workspace, "b") == {"b/c", "b/d/e"}
    assert seen(workspace, ".git") == {".git/config"}


@pytest.mark.parametrize(
    ("rules", "left"),
    [
        ("a", {"b/c", "b/log.txt", "b/d/e"}),
        ("b/", {"a"}),
        ("/c\n/b/d", {"a", "b/c", "b/log.txt"}),
        ("*\n!a", {"a"}),
        ("*.txt\n!log.txt", {"a", "b/c", "b/d/e", "b/log.txt"}),
        ("b/*\n!b/c", {"a", "b/c"}),
        ("b/**\n!b/c", {"a", "b/c"}),
        ("**/e", {"a", "b/c", "b/log.txt"}),
        ("# a\n\n!\n/\n", {"a", "b/c", "b/log.txt", "b/d/e"}),
        ("c   ", {"a", "b/log.txt", "b/d/e"}),
        ("c\r\na\r\n", {"b/log.txt", "b/d/e"}),
        (" " * 100_000 + "x\n" + "*a" * 400 + "b", {"a", "b/c", "b/log.txt", "b/d/e"}),
        ("\\a", {"b/c", "b/log.txt", "b/d/e"}),
        ("[ab]", set[str]()),
    ],
)
def test_what_gitignore_says_is_left_out(workspace: Path, rules: str, left: set[str]) -> None:
    fill(workspace, a="", b__c="", b__d__e="")
    write(workspace, "b/log.txt", "")
    write(workspace, ".gitignore", rules)
    assert seen(workspace) - {".gitignore"} == left


def test_the_inner_rules_come_first_and_hold_from_where_they_stand(workspace: Path) -> None:
    fill(workspace, a="", b__a="", b__c__a="", b__x="")
    write(workspace, ".gitignore", "a")
    write(workspace, "b/.gitignore", "!/a\nx")
    assert seen(workspace) == {".gitignore", "b/.gitignore", "b/a"}


def test_rules_above_the_start_hold_unless_they_forbid_the_start_itself(workspace: Path) -> None:
    fill(workspace, build__x="", build__y="", src__x="", src__y="")
    write(workspace, ".gitignore", "build\nx")
    assert seen(workspace, "src") == {"src/y"}
    assert seen(workspace, "build") == {"build/x", "build/y"}


def test_links_are_named_and_not_followed(workspace: Path) -> None:
    outside = workspace.parent / "outside"
    write(outside, "secret", "")
    write(workspace, "a/f", "")
    (workspace / "out").symlink_to(outside)
    (workspace / "a/up").symlink_to("..")
    found = {one.path: one.is_link for one in files(workspace, workspace, Search())}
    assert found == {"out": True, "a/up": True, "a/f": False}


def test_rules_behind_a_link_are_none(workspace: Path) -> None:
    write(workspace.parent, "rules", "a")
    fill(workspace, a="")
    (workspace / ".gitignore").symlink_to(workspace.parent / "rules")
    assert seen(workspace) == {"a", ".gitignore"}


def test_pipes_and_names_that_are_no_text_do_no_harm(workspace: Path) -> None:
    os.mkfifo(workspace / "pipe")
    (workspace / os.fsdecode(b"a\xff")).touch()
    assert seen(workspace) == {os.fsdecode(b"a\xff")}


def test_the_newest_file_comes_first(workspace: Path) -> None:
    fill(workspace, old="", b="", newer="")
    write(workspace, "a", "", age=1)
    found = newest(workspace, workspace, lambda path: path != "old", Search())
    assert [one.path for one in found] == ["newer", "a", "b"]


def test_a_search_that_is_stopped_or_late_finds_nothing_more(workspace: Path) -> None:
    fill(workspace, a="", b="")
    late, stopped = Search(seconds=0), Search()
    assert list(files(workspace, workspace, late)) == []
    assert late.notes() == ["[The search took too long and was stopped: give a narrower `path`]"]
    going = files(workspace, workspace, stopped)
    next(going)
    stopped.stop()
    assert list(going) == []


def test_a_folder_that_cannot_be_read_is_told(workspace: Path) -> None:
    search = Search()
    assert list(files(workspace, workspace / "gone", search)) == []
    assert search.notes() == ["[1 files or directories could not be read]"]


def test_that_not_all_files_were_looked_at_is_told() -> None:
    search = Search()
    search.too_many = True
    assert search.notes() == [
        f"[Only {walk.MOST_FILES:,} files were looked at: give a narrower `path`]"
    ]
