"""Edits keep newlines and encodings."""

import pytest

from tests.tools.conftest import ToolBench
from tests.tools.editing import edit_ok, edit_refused, run_editor


async def test_a_file_with_windows_line_ends_is_edited_as_it_is_seen(place: ToolBench) -> None:
    path = place.workspace / "f"
    path.write_bytes(b"one\r\ntwo\r\nthree\r\n")
    assert await edit_ok(place, "view", "f") == "     1\tone\n     2\ttwo\n     3\tthree"
    observation = await run_editor(
        place, "str_replace", "f", old_str="one\ntwo", new_str="1\n2\n2.5"
    )
    assert path.read_bytes() == b"1\r\n2\r\n2.5\r\nthree\r\n"
    assert observation.new_content == "1\r\n2\r\n2.5\r\nthree\r\n"
    await edit_ok(place, "str_replace", "f", old_str="2\r\n2.5", new_str="3\r\n4")
    assert path.read_bytes() == b"1\r\n3\r\n4\r\nthree\r\n"


async def test_a_file_of_mixed_line_ends_is_edited_byte_by_byte(place: ToolBench) -> None:
    path = place.workspace / "f"
    path.write_bytes(b"one\r\ntwo\nthree\n")
    assert await edit_refused(place, "str_replace", "f", old_str="one\ntwo", new_str="x") == (
        "`old_str` does not occur in `f`. The file mixes line ends, so `old_str` needs \\r\\n "
        "where the file has it."
    )
    await edit_ok(place, "str_replace", "f", old_str="one\r\ntwo", new_str="x")
    assert path.read_bytes() == b"x\nthree\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"\xef\xbb\xbfone\n", b"\xef\xbb\xbfnew\none\n"),
        ("\ufeffone é\n".encode("utf-16-le"), "\ufeffnew\none é\n".encode("utf-16-le")),
        ("\ufeffone\r\n".encode("utf-16-be"), "\ufeffnew\r\none\r\n".encode("utf-16-be")),
        (b"caf\xe9 \x80\n", b"new\ncaf\xe9 \x80\n"),
        (b"caf\xe9 \x81\n", b"new\ncaf\xe9 \x81\n"),
    ],
    ids=["utf-8 with a mark", "utf-16-le", "utf-16-be", "windows-1252", "latin-1"],
)
async def test_a_file_keeps_its_encoding(place: ToolBench, before: bytes, after: bytes) -> None:
    path = place.workspace / "f"
    path.write_bytes(before)
    await edit_ok(place, "insert", "f", insert_line=0, new_str="new")
    assert path.read_bytes() == after


async def test_characters_outside_the_encoding_are_refused(place: ToolBench) -> None:
    (place.workspace / "f").write_bytes(b"caf\xe9")
    assert await edit_refused(place, "str_replace", "f", old_str="café", new_str="→") == (
        "`f` is in cp1252, which has no '→': use characters that it has, or convert the file to "
        "UTF-8 first."
    )
