"""The file editor's edits can be undone by any worker, unless the file changed since."""

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.events.content import join_text
from perdure.events.observations import FileEditorObservation, ThinkObservation
from perdure.tools.history import ENTRIES_PER_READ
from tests.tools.conftest import ToolBench
from tests.tools.editing import ON_ONE_WORKSPACE, contents, edit_refused, run_editor
from tests.tools.recording import log_as_another_worker_reads_it, record


async def edit_and_record(place: ToolBench, command: str, path: str = "f", **arguments: Any) -> str:
    """Edit, and record the observation in the log."""
    observation = await run_editor(place, command, path, **arguments)
    assert not observation.is_error, join_text(observation.content)
    await record(place, observation)
    return join_text(observation.content)


async def test_an_edit_is_undone(place: ToolBench) -> None:
    path = place.workspace / "f"
    path.write_text("a\nb\nc\n")
    await edit_and_record(place, "str_replace", old_str="b", new_str="B")
    observation = await run_editor(place, "undo_edit", "f")
    assert path.read_text() == "a\nb\nc\n"
    assert (observation.old_content, observation.new_content) == ("a\nB\nc\n", "a\nb\nc\n")
    assert join_text(observation.content) == (
        "Took back the last edit of `f` (`str_replace`); around the change it now reads:\n"
        "     1\ta\n     2\tb\n     3\tc"
    )


async def test_edits_are_undone_one_after_the_other(place: ToolBench) -> None:
    path = place.workspace / "f"
    path.write_text("1\n")
    await edit_and_record(place, "insert", insert_line=1, new_str="2")
    await edit_and_record(place, "insert", insert_line=2, new_str="3")
    await edit_and_record(place, "undo_edit")
    assert path.read_text() == "1\n2\n"
    await edit_and_record(place, "insert", insert_line=2, new_str="drei")
    await edit_and_record(place, "view")
    await edit_and_record(place, "undo_edit")
    assert path.read_text() == "1\n2\n"
    await edit_and_record(place, "undo_edit")
    assert path.read_text() == "1\n"
    assert await edit_refused(place, "undo_edit", "f") == (
        "There is no edit of `f` by this tool that could be undone."
    )


async def test_a_file_that_was_created_is_gone_again(place: ToolBench) -> None:
    await edit_and_record(place, "create", "a/f", file_text="x")
    assert (
        await edit_and_record(place, "undo_edit", "a/f")
        == "Took back the creation of `a/f`: it is gone."
    )
    assert contents(place.workspace) == {}
    assert await edit_refused(place, "undo_edit", "a/f") == "`a/f` does not exist."
    await edit_and_record(place, "create", "a/f", file_text="y")
    await edit_and_record(place, "undo_edit", "a/f")
    assert contents(place.workspace) == {}


async def test_a_file_changed_by_others_is_not_undone(place: ToolBench) -> None:
    path = place.workspace / "f"
    path.write_text("a\n")
    await edit_and_record(place, "insert", insert_line=0, new_str="b")
    path.write_text("c\n")
    assert await edit_refused(place, "undo_edit", "f") == (
        "`f` has changed since its last edit by this tool, so that cannot be undone: view it, and "
        "edit it instead."
    )


async def test_an_edit_that_failed_or_was_of_another_file_is_none(place: ToolBench) -> None:
    for name in ("f", "g"):
        (place.workspace / name).write_text("a\n")
    await edit_and_record(place, "insert", "f", insert_line=0, new_str="b")
    await edit_and_record(place, "insert", "g", insert_line=0, new_str="b")
    await record(place, await run_editor(place, "str_replace", "f", old_str="no", new_str="x"))
    await edit_and_record(place, "undo_edit", "f")
    assert (place.workspace / "f").read_text() == "a\n"
    assert (place.workspace / "g").read_text() == "b\na\n"


async def test_an_edit_is_found_however_long_ago_it_was(place: ToolBench) -> None:
    (place.workspace / "f").write_text("a\n")
    await edit_and_record(place, "insert", insert_line=0, new_str="b")
    await record(place, *[ThinkObservation() for _ in range(ENTRIES_PER_READ + 1)])
    await edit_and_record(place, "undo_edit")
    assert (place.workspace / "f").read_text() == "a\n"


@pytest.mark.parametrize("content", [b"caf\xe9\n", b"long\n" * 20_000, b"a\r\nb\n\xef\xbb\xbf"])
async def test_another_worker_with_another_workspace_gives_back_every_byte(
    place: ToolBench, tmp_path: Path, content: bytes
) -> None:
    (place.workspace / "a").mkdir()
    (place.workspace / "a/f").write_bytes(content)
    await edit_and_record(
        place, "insert", str(place.workspace / "a/f"), insert_line=0, new_str="new"
    )
    shutil.move(place.workspace, tmp_path / "restored")
    context = dataclasses.replace(
        place.context, workspace=tmp_path / "restored", log=log_as_another_worker_reads_it(place)
    )
    await edit_and_record(ToolBench(context), "undo_edit", "a/f")
    assert (tmp_path / "restored/a/f").read_bytes() == content


async def test_a_file_is_the_same_by_every_name(place: ToolBench) -> None:
    (place.workspace / "f").write_text("a\n")
    (place.workspace / "link").symlink_to("f")
    await edit_and_record(place, "insert", "link", insert_line=0, new_str="b")
    await edit_and_record(place, "undo_edit", str(place.workspace / "f"))
    assert (place.workspace / "f").read_text() == "a\n"
    assert (place.workspace / "link").is_symlink()


async def test_an_older_record_without_the_content_is_reported(place: ToolBench) -> None:
    (place.workspace / "f").write_text("new")
    last = FileEditorObservation(command="str_replace", path="f", new_content="new")
    await record(place, last)
    assert await edit_refused(place, "undo_edit", "f") == (
        "What `f` said before its last edit is not on record."
    )


STEPS = st.lists(
    st.tuples(st.sampled_from(["insert", "insert", "undo_edit"]), st.integers(0, 99)), max_size=6
)


@pytest.mark.long
@settings(ON_ONE_WORKSPACE, max_examples=15)
@given(st.text("ab\n\r", max_size=8), STEPS)
async def test_undoing_goes_back_through_all_that_the_file_ever_was(
    place: ToolBench, before: str, steps: list[tuple[str, int]]
) -> None:
    path = place.workspace / f"f{await place.context.log.end()}"
    path.write_bytes(before.encode())
    was = [path.read_bytes()]
    for command, number in steps:
        arguments: dict[str, Any] = {}
        if command == "insert":
            arguments = {"insert_line": 0, "new_str": f"line {number}"}
        elif len(was) == 1:
            continue
        await edit_and_record(place, command, path.name, **arguments)
        was = was[:-1] if command == "undo_edit" else [*was, path.read_bytes()]
        assert path.read_bytes() == was[-1]
    for content in reversed(was[:-1]):
        await edit_and_record(place, "undo_edit", path.name)
        assert path.read_bytes() == content
    await record(place, ThinkObservation())
