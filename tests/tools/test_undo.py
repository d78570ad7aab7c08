"""What the file editor did can be taken back, by any worker, as long as nobody else was there."""

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from events.content import text_of
from events.observations import FileEditorObservation, ThinkObservation
from tests.tools.conftest import Place
from tests.tools.editing import ON_ONE_WORKSPACE, contents, do, refused
from tests.tools.recording import log_as_another_worker_reads_it, record
from tools.history import PAGE


async def edit(place: Place, command: str, path: str = "f", **arguments: Any) -> str:
    """Do it and put it on record."""
    observation = await do(place, command, path, **arguments)
    assert not observation.is_error, text_of(observation.content)
    await record(place, observation)
    return text_of(observation.content)


async def test_an_edit_is_taken_back(place: Place) -> None:
    path = place.workspace / "f"
    path.write_text("a\nb\nc\n")
    await edit(place, "str_replace", old_str="b", new_str="B")
    observation = await do(place, "undo_edit", "f")
    assert path.read_text() == "a\nb\nc\n"
    assert (observation.old_content, observation.new_content) == ("a\nB\nc\n", "a\nb\nc\n")
    assert text_of(observation.content) == (
        "Took back the last edit of `f` (`str_replace`); around the change it now reads:\n"
        "     1\ta\n     2\tb\n     3\tc"
    )


async def test_edits_are_taken_back_one_after_the_other(place: Place) -> None:
    path = place.workspace / "f"
    path.write_text("1\n")
    await edit(place, "insert", insert_line=1, new_str="2")
    await edit(place, "insert", insert_line=2, new_str="3")
    await edit(place, "undo_edit")
    assert path.read_text() == "1\n2\n"
    await edit(place, "insert", insert_line=2, new_str="drei")
    await edit(place, "view")
    await edit(place, "undo_edit")
    assert path.read_text() == "1\n2\n"
    await edit(place, "undo_edit")
    assert path.read_text() == "1\n"
    assert await refused(place, "undo_edit", "f") == (
        "There is no edit of `f` by this tool that could be undone."
    )


async def test_a_file_that_was_created_is_gone_again(place: Place) -> None:
    await edit(place, "create", "a/f", file_text="x")
    assert await edit(place, "undo_edit", "a/f") == "Took back the creation of `a/f`: it is gone."
    assert contents(place.workspace) == {}
    assert await refused(place, "undo_edit", "a/f") == "`a/f` does not exist."
    await edit(place, "create", "a/f", file_text="y")
    await edit(place, "undo_edit", "a/f")
    assert contents(place.workspace) == {}


async def test_what_somebody_else_changed_is_left_alone(place: Place) -> None:
    path = place.workspace / "f"
    path.write_text("a\n")
    await edit(place, "insert", insert_line=0, new_str="b")
    path.write_text("c\n")
    assert await refused(place, "undo_edit", "f") == (
        "`f` has changed since its last edit by this tool, so that cannot be undone: view it, and "
        "edit it instead."
    )


async def test_an_edit_that_failed_or_was_of_another_file_is_none(place: Place) -> None:
    for name in ("f", "g"):
        (place.workspace / name).write_text("a\n")
    await edit(place, "insert", "f", insert_line=0, new_str="b")
    await edit(place, "insert", "g", insert_line=0, new_str="b")
    await record(place, await do(place, "str_replace", "f", old_str="no", new_str="x"))
    await edit(place, "undo_edit", "f")
    assert (place.workspace / "f").read_text() == "a\n"
    assert (place.workspace / "g").read_text() == "b\na\n"


async def test_an_edit_is_found_however_long_ago_it_was(place: Place) -> None:
    (place.workspace / "f").write_text("a\n")
    await edit(place, "insert", insert_line=0, new_str="b")
    await record(place, *[ThinkObservation() for _ in range(PAGE + 1)])
    await edit(place, "undo_edit")
    assert (place.workspace / "f").read_text() == "a\n"


@pytest.mark.parametrize("content", [b"caf\xe9\n", b"long\n" * 20_000, b"a\r\nb\n\xef\xbb\xbf"])
async def test_another_worker_with_another_workspace_gives_back_every_byte(
    place: Place, tmp_path: Path, content: bytes
) -> None:
    (place.workspace / "a").mkdir()
    (place.workspace / "a/f").write_bytes(content)
    await edit(place, "insert", str(place.workspace / "a/f"), insert_line=0, new_str="new")
    shutil.move(place.workspace, tmp_path / "restored")
    context = dataclasses.replace(
        place.context, workspace=tmp_path / "restored", log=log_as_another_worker_reads_it(place)
    )
    await edit(Place(context), "undo_edit", "a/f")
    assert (tmp_path / "restored/a/f").read_bytes() == content


async def test_a_file_is_the_same_by_every_name(place: Place) -> None:
    (place.workspace / "f").write_text("a\n")
    (place.workspace / "link").symlink_to("f")
    await edit(place, "insert", "link", insert_line=0, new_str="b")
    await edit(place, "undo_edit", str(place.workspace / "f"))
    assert (place.workspace / "f").read_text() == "a\n"
    assert (place.workspace / "link").is_symlink()


async def test_an_older_record_without_the_content_is_told(place: Place) -> None:
    (place.workspace / "f").write_text("new")
    last = FileEditorObservation(command="str_replace", path="f", new_content="new")
    await record(place, last)
    assert await refused(place, "undo_edit", "f") == (
        "What `f` said before its last edit is not on record."
    )


STEPS = st.lists(
    st.tuples(st.sampled_from(["insert", "insert", "undo_edit"]), st.integers(0, 99)), max_size=6
)


@settings(ON_ONE_WORKSPACE, max_examples=15)
@given(st.text("ab\n\r", max_size=8), STEPS)
async def test_undoing_goes_back_through_all_that_the_file_ever_was(
    place: Place, before: str, steps: list[tuple[str, int]]
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
        await edit(place, command, path.name, **arguments)
        was = was[:-1] if command == "undo_edit" else [*was, path.read_bytes()]
        assert path.read_bytes() == was[-1]
    for content in reversed(was[:-1]):
        await edit(place, "undo_edit", path.name)
        assert path.read_bytes() == content
    await record(place, ThinkObservation())
