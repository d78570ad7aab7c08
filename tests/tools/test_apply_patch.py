"""A patch is atomic, and stays in the workspace."""

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.events.actions import MCPToolAction
from perdure.sandbox.safe_path import SafePath
from perdure.tools.apply_patch import APPLY_PATCH
from perdure.tools.editing.edits import Edit, apply_edits
from perdure.tools.tool import ToolFailed
from tests.tools.conftest import ToolBench
from tests.tools.editing import ON_ONE_WORKSPACE, contents
from tests.tools.patching import patch
from tests.tools.searching import refusal, run_tool


async def apply(place: ToolBench, *lines: str) -> str:
    return await run_tool(APPLY_PATCH, place, patch=patch(*lines))


async def apply_refused(place: ToolBench, *lines: str) -> str:
    before = read_all(place.workspace)
    message = await refusal(APPLY_PATCH, place, patch=patch(*lines))
    assert read_all(place.workspace) == before
    return message


def read_all(folder: Path) -> set[tuple[Path, bytes]]:
    """Also the empty directories and what lies aside."""
    return {(path, path.read_bytes() if path.is_file() else b"") for path in folder.rglob("*")}


def read_texts(place: ToolBench) -> dict[str, str]:
    return {
        str(path.relative_to(place.workspace)): content.decode()
        for path, content in contents(place.workspace).items()
    }


async def test_files_are_added_changed_moved_and_deleted(place: ToolBench) -> None:
    for name in ("change", "move", "rename", "delete"):
        (place.workspace / name).write_text(f"{name}\n")
    report = await apply(
        place,
        "*** Add File: a/b/new",
        "+hello",
        "*** Update File: change",
        "-change",
        "+  changed",
        "*** Update File: move",
        "*** Move to: a/moved",
        "-move",
        "+moved",
        "*** Update File: rename",
        "*** Move to: renamed",
        "*** Delete File: delete",
    )
    assert read_texts(place) == {
        "a/b/new": "hello\n",
        "a/moved": "moved\n",
        "change": "  changed\n",
        "renamed": "rename\n",
    }
    assert report.splitlines() == [
        "Done:",
        "A a/b/new",
        "M change",
        "R move -> a/moved",
        "R rename -> renamed",
        "D delete",
    ]


async def test_an_inexact_hunk_is_reported(place: ToolBench) -> None:
    (place.workspace / "f").write_text("\ta\n\tb\n")
    report = await apply(place, "*** Update File: f", " a", "-b")
    assert report == "Done:\nM f (hunk 1: found with other whitespace or signs, so check it)"


async def test_line_ends_encodings_and_modes_are_kept(place: ToolBench) -> None:
    script = place.workspace / "script"
    script.write_bytes(b"caf\xe9\r\nold\r\n")
    script.chmod(0o750)
    await apply(place, "*** Update File: script", " café", "-old", "+new", "+er")
    assert script.read_bytes() == b"caf\xe9\r\nnew\r\ner\r\n"
    await apply(place, "*** Update File: script", "*** Move to: moved")
    assert (place.workspace / "moved").read_bytes() == b"caf\xe9\r\nnew\r\ner\r\n"
    assert stat.S_IMODE((place.workspace / "moved").stat().st_mode) == 0o750


async def test_nothing_is_changed_where_one_hunk_does_not_fit(place: ToolBench) -> None:
    for name in ("f", "g"):
        (place.workspace / name).write_text("a\n")
    message = await apply_refused(
        place,
        "*** Add File: a/new",
        "+x",
        "*** Update File: f",
        "-a",
        "*** Update File: g",
        "-b",
        "*** Delete File: no",
    )
    assert message == (
        "Nothing was changed.\n"
        "Hunk 1 of `g` (line 7 of the patch) does not fit: these lines are not in the file:\nb\n"
        "The file has none of them: view it, and copy its lines exactly.\n"
        "`no` does not exist: add it, or name another file."
    )


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (
            ("*** Add File: f", "+x"),
            "`f` exists already: update it, or choose another path.",
        ),
        (
            ("*** Update File: f", "*** Move to: g"),
            "`g` exists already: update it, or choose another path.",
        ),
        (("*** Add File: f/x", "+x"), "`f/x`: Not a directory."),
        (("*** Delete File: folder",), "`folder` is not a regular file."),
        (("*** Update File: folder", "-x"), "`folder` is not a regular file."),
        (("*** Update File: no", "-x"), "`no` does not exist: add it, or name another file."),
        (("*** Delete File: link",), "`link` is a symbolic link: name the file that it leads to."),
        (
            ("*** Update File: link", "*** Move to: x"),
            "`link` is a symbolic link: name the file that it leads to.",
        ),
        (
            ("*** Update File: f", "-a", "*** Update File: ./f", "-b"),
            "`./f` is named twice: put all of its hunks into one update.",
        ),
        (
            ("*** Update File: link", "-a", "*** Delete File: f"),
            "`f` is named twice: put all of its hunks into one update.",
        ),
        (
            ("*** Update File: binary", "-a"),
            "`binary` is a binary file: it holds NUL bytes.",
        ),
        (
            ("*** Add File: new/x", "+x", "*** Add File: new", "+x"),
            "`new` is not a regular file.",
        ),
    ],
)
async def test_an_impossible_patch_is_reported_and_changes_nothing(
    place: ToolBench, lines: tuple[str, ...], sentence: str
) -> None:
    for name in ("f", "g"):
        (place.workspace / name).write_text("a\nb\n")
    (place.workspace / "binary").write_bytes(b"a\0")
    (place.workspace / "folder").mkdir()
    (place.workspace / "link").symlink_to("f")
    assert await apply_refused(place, *lines) == f"Nothing was changed.\n{sentence}"


@pytest.mark.parametrize("text", ["*** Delete File: f", patch("x"), patch()])
async def test_an_invalid_patch_is_reported(place: ToolBench, text: str) -> None:
    assert "patch" in await refusal(APPLY_PATCH, place, patch=text)


@pytest.mark.parametrize(
    "path", ["../outside/secret", "/etc/passwd", "a/../../outside/secret", "out/secret", "file"]
)
async def test_no_path_leaves_the_workspace(place: ToolBench, path: str) -> None:
    outside = place.workspace.parent / "outside"
    outside.mkdir()
    (outside / "secret").write_text("a treasure\n")
    (place.workspace / "out").symlink_to(outside)
    (place.workspace / "file").symlink_to(outside / "secret")
    (place.workspace / "mine").write_text("x\n")
    for lines in (
        (f"*** Add File: {path}", "+planted"),
        (f"*** Update File: {path}", "-a treasure"),
        (f"*** Delete File: {path}",),
        ("*** Update File: mine", f"*** Move to: {path}", "-x", "+planted"),
    ):
        assert f"`{path}` leads out of the workspace" in await apply_refused(place, *lines)
    assert contents(outside) == {outside / "secret": b"a treasure\n"}


def edit(workspace: Path, name: str, before: bytes | None, after: bytes | None) -> Edit:
    return Edit(SafePath(workspace, workspace / name), name, before, after)


def test_earlier_edits_are_rolled_back_when_a_later_one_fails(workspace: Path) -> None:
    changed, deleted = workspace / "changed", workspace / "deleted"
    for path in (changed, deleted):
        path.write_bytes(b"before")
        path.chmod(0o640)
    before = read_all(workspace)
    edits = [
        edit(workspace, "changed", b"before", b"after"),
        edit(workspace, "deleted", b"before", None),
        edit(workspace, "a/b/new", None, b"new"),
        edit(workspace, "deleted", b"before", None),  # it is gone by then
    ]
    with pytest.raises(ToolFailed, match=r"^`deleted`: No such file or directory\.$"):
        apply_edits(edits)
    assert read_all(workspace) == before
    assert {stat.S_IMODE(path.stat().st_mode) for path in (changed, deleted)} == {0o640}


def test_a_file_that_was_changed_meanwhile_stops_all_edits(workspace: Path) -> None:
    (workspace / "f").write_bytes(b"theirs")
    with pytest.raises(ToolFailed, match="`f` was changed by something else at the same time"):
        apply_edits([edit(workspace, "a/g", None, b"x"), edit(workspace, "f", b"mine", b"x")])
    assert contents(workspace) == {workspace / "f": b"theirs"}
    assert not (workspace / "a").exists()


@ON_ONE_WORKSPACE
@given(st.dictionaries(st.sampled_from("abcd"), st.sampled_from(["A", "U", "D", "M"])), st.data())
async def test_a_patch_is_applied_wholly_or_not_at_all(
    place: ToolBench, changes: dict[str, str], data: st.DataObject
) -> None:
    for name in "abcd":
        (place.workspace / name).unlink(missing_ok=True)
        (place.workspace / f"{name}2").unlink(missing_ok=True)
        if data.draw(st.booleans()):
            (place.workspace / name).write_text(name)
    before = read_texts(place)
    lines = {
        "A": ("*** Add File: {0}", "+new"),
        "U": ("*** Update File: {0}", "-{0}", "+changed"),
        "D": ("*** Delete File: {0}",),
        "M": ("*** Update File: {0}", "*** Move to: {0}2"),
    }
    wanted = [line.format(name) for name, kind in changes.items() for line in lines[kind]]
    fits = all((name in before) == (kind != "A") for name, kind in changes.items())
    if not (fits and wanted):
        await refusal(APPLY_PATCH, place, patch=patch(*wanted))
        assert read_texts(place) == before
        return
    await apply(place, *wanted)
    after = {name: text for name, text in before.items() if name not in changes}
    made = {"A": "new\n", "U": "changed"}
    after |= {name: made[kind] for name, kind in changes.items() if kind in made}
    after |= {f"{name}2": name for name, kind in changes.items() if kind == "M"}
    assert read_texts(place) == after


@pytest.mark.parametrize(
    ("lines", "touched"),
    [
        (("*** Add File: a/./b", "*** Delete File: c"), ("file:a/b", "file:c")),
        (("*** Update File: a", "*** Move to: b"), ("file:a", "file:b")),
        (("*** Delete File: ../a",), None),
        (("*** Delete File: a", "*** Add File: /b"), None),
        (("nonsense",), None),
    ],
)
def test_the_resources_of_a_patch_are_its_files(
    lines: tuple[str, ...], touched: tuple[str, ...] | None
) -> None:
    assert APPLY_PATCH.resources(MCPToolAction(data={"patch": patch(*lines)})) == touched


def test_the_annotations_say_the_worst_but_for_the_world() -> None:
    annotations = APPLY_PATCH.definition.annotations
    assert annotations.destructiveHint
    assert not annotations.openWorldHint
    assert not annotations.repeatable
    assert "*** Begin Patch" in APPLY_PATCH.definition.description


async def test_an_error_of_the_operating_system_changes_nothing_and_is_said(
    place: ToolBench,
) -> None:
    name = "n" * 300
    message = await apply_refused(
        place, "*** Add File: good", "+text", f"*** Add File: {name}", "+"
    )
    assert message == f"Nothing was changed.\n`{name}`: File name too long."
