"""Files are edited without touching anything else in them."""

import stat
from itertools import combinations
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from perdure.events.actions import FileEditorAction
from perdure.events.content import join_text
from perdure.tools.editing.edits import MAX_INLINE_BYTES, load_content
from perdure.tools.editing.text_file import Text, split_lines
from perdure.tools.file_editor import FILE_EDITOR, parse
from tests.tools.conftest import ToolBench
from tests.tools.editing import ON_ONE_WORKSPACE, edit_ok, edit_refused, run_editor

TEXTS = st.text("ab\n\r é\u2028", max_size=30) | st.from_regex(
    r"([ab]{0,2}\r\n){0,5}b?", fullmatch=True
)


async def test_a_new_file_gets_its_directories_and_the_usual_mode(place: ToolBench) -> None:
    observation = await run_editor(place, "create", "a/b/f.txt", file_text="x\r\ny")
    assert not observation.is_error
    path = place.workspace / "a/b/f.txt"
    assert path.read_bytes() == b"x\r\ny"
    (place.workspace / "usual").touch()
    assert path.stat().st_mode == (place.workspace / "usual").stat().st_mode
    assert join_text(observation.content) == "Created `a/b/f.txt` with 2 lines."
    assert (observation.path, observation.prev_exist) == ("a/b/f.txt", False)
    assert (observation.old_content, observation.new_content) == (None, "x\r\ny")


async def test_create_never_overwrites(place: ToolBench) -> None:
    (place.workspace / "f").write_text("mine")
    for path in ("f", "."):
        assert await edit_refused(place, "create", path, file_text="x") == (
            f"`{path}` exists and `create` never overwrites: edit it with `str_replace` or "
            "`insert`, or choose another path."
        )


async def test_a_file_is_no_directory(place: ToolBench) -> None:
    (place.workspace / "f").touch()
    sentence = await edit_refused(place, "create", "f/g", file_text="x")
    assert sentence in ("`f/g`: Not a directory.", "`f/g`: File exists.")


async def test_an_edit_tells_what_was_and_what_is(place: ToolBench) -> None:
    before = "".join(f"{n}\n" for n in range(1, 21))
    (place.workspace / "f").write_text(before)
    observation = await run_editor(
        place, "str_replace", "f", old_str="10\n", new_str="ten\nand a half\n"
    )
    after = before.replace("10\n", "ten\nand a half\n")
    assert (place.workspace / "f").read_text() == after
    assert (observation.old_content, observation.new_content) == (before, after)
    assert observation.prev_exist
    assert observation.path == "f"
    numbered = [f"{n:6}\t{line}" for n, line in enumerate(after.splitlines(), 1)]
    assert join_text(observation.content).splitlines() == [
        "Edited `f`; around the change it now reads:",
        *numbered[5:16],
    ]


async def test_a_long_content_is_kept_and_its_key_is_carried(place: ToolBench) -> None:
    before = "é" * (MAX_INLINE_BYTES // 2)
    (place.workspace / "f").write_text(before)
    observation = await run_editor(place, "insert", "f", insert_line=0, new_str="x")
    assert observation.old_content == before
    assert observation.new_content is not None
    assert len(observation.new_content) < 100
    assert await place.stored(observation.new_content) == f"x\n{before}".encode()


async def test_a_content_that_reads_like_a_key_is_not_taken_for_one(place: ToolBench) -> None:
    key = "blobs/" + "0" * 64
    observation = await run_editor(place, "create", "f", file_text=key)
    assert observation.new_content not in (None, key)
    assert observation.new_content is not None
    assert await load_content(place.context.log, observation.new_content) == key.encode()


async def test_old_str_must_occur(place: ToolBench) -> None:
    (place.workspace / "f").write_text("a\n  b\n")
    assert await edit_refused(place, "str_replace", "f", old_str="c") == (
        "`old_str` does not occur in `f`. View the file and copy the text exactly, without the "
        "line numbers."
    )
    assert await edit_refused(place, "str_replace", "f", old_str="\tb\n") == (
        "`old_str` does not occur in `f`. Line 2 has it with other whitespace around: copy it "
        "exactly."
    )


async def test_old_str_must_occur_only_once(place: ToolBench) -> None:
    (place.workspace / "f").write_text("x = 1\ny\nx = 1\nx = 1\n")
    assert await edit_refused(place, "str_replace", "f", old_str="x = 1", new_str="z") == (
        "`old_str` occurs more than once in `f`, at lines 1, 3, 4: take more of the lines around "
        "it into `old_str`."
    )


async def test_overlapping_places_are_different_places(place: ToolBench) -> None:
    (place.workspace / "f").write_text("aaa")
    assert "occurs more than once in `f`, at lines 1:" in (
        await edit_refused(place, "str_replace", "f", old_str="aa", new_str="b")
    )


async def test_an_error_lists_the_first_of_many_matches(place: ToolBench) -> None:
    (place.workspace / "f").write_text("a\n" * 10_000)
    assert "at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20 and" in (
        await edit_refused(place, "str_replace", "f", old_str="a", new_str="b")
    )


async def test_an_edit_must_change_something(place: ToolBench) -> None:
    (place.workspace / "f").write_text("a\n")
    assert await edit_refused(place, "str_replace", "f", old_str="a", new_str="a") == (
        "`old_str` and `new_str` are the same: nothing would change."
    )
    assert await edit_refused(place, "str_replace", "f", old_str="", new_str="a") == (
        "`old_str` is empty: give the text to replace, or use `insert`."
    )


async def test_without_new_str_the_text_is_taken_out(place: ToolBench) -> None:
    (place.workspace / "f").write_text("keep drop keep")
    await edit_ok(place, "str_replace", "f", old_str=" drop")
    assert (place.workspace / "f").read_text() == "keep keep"


@pytest.mark.parametrize("insert_line", [3, 100])
async def test_there_is_no_inserting_behind_the_end(place: ToolBench, insert_line: int) -> None:
    (place.workspace / "f").write_text("a\nb\n")
    assert await edit_refused(place, "insert", "f", insert_line=insert_line, new_str="x") == (
        f"`insert_line` is {insert_line}, but `f` has 2 lines: use 0 to 2."
    )


@pytest.mark.parametrize(
    ("before", "line", "new", "after"),
    [
        ("", 0, "x", "x\n"),
        ("", 0, "", "\n"),
        ("a\nb\n", 0, "x", "x\na\nb\n"),
        ("a\nb\n", 2, "x\n", "a\nb\nx\n"),
        ("a\nb", 2, "x", "a\nb\nx"),
        ("a\nb", 1, "x\ny", "a\nx\ny\nb"),
        ("a\r\nb\r\n", 1, "x\ny", "a\r\nx\r\ny\r\nb\r\n"),
        ("a\r\nb", 2, "x\r\n", "a\r\nb\r\nx"),
    ],
)
async def test_lines_are_inserted_whole(
    place: ToolBench, before: str, line: int, new: str, after: str
) -> None:
    path = place.workspace / "f"
    path.write_bytes(before.encode())
    await edit_ok(place, "insert", "f", insert_line=line, new_str=new)
    assert path.read_bytes().decode() == after


@ON_ONE_WORKSPACE
@given(TEXTS, st.lists(st.text("xy\u2028"), max_size=3), st.data())
async def test_inserting_leaves_every_other_byte_alone(
    place: ToolBench, before: str, new: list[str], data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, Text.from_raw(before).body.count("\n")))
    head = "".join(f"{line}\n" for line in before.split("\n")[:at])
    path = place.workspace / "f"
    path.write_bytes(before.encode())
    await edit_ok(place, "insert", "f", insert_line=at, new_str="\n".join(["<", *new, ">"]))
    after = path.read_bytes().decode()
    tail = before[len(head) :]
    assert after.startswith(head)
    assert after.endswith(tail)
    inserted = after[len(head) : len(after) - len(tail)]
    assert inserted.replace("\r\n", "\n").strip("\n").split("\n") == ["<", *new, ">"]
    path.unlink()


@ON_ONE_WORKSPACE
@given(TEXTS, st.data(), st.text("xyz\n", max_size=5))
async def test_replacing_there_and_back_gives_the_same_bytes(
    place: ToolBench, before: str, data: st.DataObject, new: str
) -> None:
    text = Text.from_raw(before)
    seen = text.body
    # Of `\r\r\n` in such a file the last two are its newline: a model cannot name the first two.
    assume(text.newline == "\n" or "\r\n" not in seen)
    bounds = combinations(range(len(seen) + 1), 2)
    parts = [seen[start:end] for start, end in bounds]
    unique = [part for part in parts if seen.find(part) == seen.rfind(part)]
    assume(unique)
    old, marked = data.draw(st.sampled_from(unique)), f"<{new}>"
    path = place.workspace / "f"
    path.write_bytes(before.encode())
    await edit_ok(place, "str_replace", "f", old_str=old, new_str=marked)
    between = path.read_bytes().decode()
    assert Text.from_raw(before).raw == before
    assert between.partition("<")[0] + between.rpartition(">")[2] == _without(before, old)
    if Text.from_raw(between).newline == Text.from_raw(before).newline:
        await edit_ok(place, "str_replace", "f", old_str=marked, new_str=old)
        assert path.read_bytes().decode() == before
    path.unlink()


def _without(raw: str, old: str) -> str:
    text = Text.from_raw(raw)
    return text.with_body(text.body.replace(old, "")).raw


@settings(deadline=None)
@given(st.text("ab\n\r", max_size=12))
def test_a_text_is_written_as_it_was_read(raw: str) -> None:
    assert Text.from_raw(raw).raw == raw
    joined = "\n".join(split_lines(raw))
    assert joined == raw or joined + "\n" == raw


async def test_an_edited_file_keeps_its_mode_and_a_link_stays_a_link(place: ToolBench) -> None:
    script = place.workspace / "script"
    script.write_text("echo a\n")
    script.chmod(0o4750)
    (place.workspace / "link").symlink_to("script")
    await edit_ok(place, "str_replace", "link", old_str="a", new_str="b")
    assert stat.S_IMODE(script.stat().st_mode) == 0o4750
    assert script.read_text() == "echo b\n"
    assert (place.workspace / "link").is_symlink()
    assert sorted(path.name for path in place.workspace.iterdir()) == ["link", "script"]


async def test_a_reader_sees_the_old_file_or_the_new_one(place: ToolBench) -> None:
    path = place.workspace / "f"
    path.write_text("old")
    with path.open() as reader:
        await edit_ok(place, "str_replace", "f", old_str="old", new_str="new")
        assert reader.read() == "old"
    assert path.read_text() == "new"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"command": "create"}, "`file_text` is missing: `create` needs it."),
        ({"command": "str_replace"}, "`old_str` is missing: `str_replace` needs it."),
        ({"command": "insert", "new_str": ""}, "`insert_line` is missing: `insert` needs it."),
        ({"command": "insert", "insert_line": 1}, "`new_str` is missing: `insert` needs it."),
        (
            {"command": "delete"},
            "`command`: input should be 'view', 'create', 'str_replace', 'insert' or 'undo_edit', "
            "got 'delete'.",
        ),
        (
            {"command": "insert", "insert_line": -1, "new_str": ""},
            "`insert_line`: input should be greater than or equal to 0, got -1.",
        ),
        (
            {"command": "view", "view_range": [1]},
            "`view_range`: list should have at least 2 items after validation, not 1, got [1].",
        ),
    ],
)
def test_invalid_arguments_are_reported_in_a_sentence(
    arguments: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the whole sentence is compared
        parse({"path": "f", **arguments})
    assert str(raised.value) == sentence


def test_arguments_become_an_action() -> None:
    assert parse({"command": "view", "path": "f", "view_range": ["1", "-1"]}) == FileEditorAction(
        command="view", path="f", view_range=(1, -1)
    )


def test_the_annotations_say_the_worst_but_for_the_world() -> None:
    annotations = FILE_EDITOR.definition.annotations
    assert annotations.destructiveHint
    assert not annotations.openWorldHint
    assert not annotations.repeatable


@pytest.mark.parametrize(
    ("path", "touched"),
    [
        ("src/main.py", ("file:src/main.py",)),
        ("./src//main.py", ("file:src/main.py",)),
        ("", ("file:.",)),
        ("src/../main.py", None),
        ("/somewhere/main.py", None),
    ],
)
def test_an_action_touches_the_file_that_its_path_surely_names(
    path: str, touched: tuple[str, ...] | None
) -> None:
    assert FILE_EDITOR.resources(parse({"command": "view", "path": path})) == touched
