"""Patches are parsed tolerantly, or the invalid line is reported."""

import pytest

from perdure.tools.editing.patch import Add, Delete, Hunk, PatchError, Sign, Update, parse_patch
from tests.tools.patching import patch


def unreadable(text: str) -> str:
    with pytest.raises(PatchError) as raised:
        parse_patch(text)
    return str(raised.value)


def test_a_patch_says_what_becomes_of_each_file() -> None:
    text = patch(
        "*** Add File: a b.txt",
        "+one",
        "+",
        "*** Delete File: c",
        "",
        "*** Update File: d",
        "*** Move to: e/f",
        "@@ class A:",
        "@@     def b():",
        " stays",
        "-goes",
        "+comes",
        "",
        " stays",
        "*** End of File",
    )
    lines: tuple[tuple[Sign, str], ...] = (
        (" ", "stays"),
        ("-", "goes"),
        ("+", "comes"),
        (" ", ""),
        (" ", "stays"),
    )
    hunk = Hunk(9, ("class A:", "    def b():"), lines, at_end=True)
    assert parse_patch(text) == (
        Add("a b.txt", "one\n\n"),
        Delete("c"),
        Update("d", "e/f", (hunk,)),
    )


@pytest.mark.parametrize(
    "wrapped",
    [
        "```\n{}```",
        "```diff\n{}\n```\n",
        "apply_patch <<'EOF'\n{}EOF\n",
        "cat <<PATCH | apply_patch\n{}PATCH",
        "Here it is:\n\n{}\n",
        "\n  {}",
    ],
)
def test_wrapping_around_a_patch_is_removed(wrapped: str) -> None:
    bare = patch("*** Add File: f", "+x")
    assert parse_patch(wrapped.format(bare)) == (Add("f", "x\n"),)
    assert parse_patch(wrapped.format(bare).replace("\n", "\r\n")) == (Add("f", "x\n"),)


def test_a_new_file_may_be_empty_and_may_hold_marks() -> None:
    assert parse_patch(patch("*** Add File: f")) == (Add("f", ""),)
    text = patch("*** Add File: f", "+*** End Patch", "+*** Begin Patch")
    assert parse_patch(text) == (Add("f", "*** End Patch\n*** Begin Patch\n"),)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "The patch must begin with the line `*** Begin Patch`."),
        (
            "*** Begin Patch\n*** Delete File: f\n",
            "The patch has no line `*** End Patch` at its end: it may be cut off.",
        ),
        (
            patch(),
            "The patch names no file: begin with `*** Update File: path` or the like.",
        ),
        (
            patch("+x", "*** Add File: f"),
            "Line 2 of the patch ('+x') stands before the first file's header.",
        ),
        (
            patch("*** Add File: f", "+x", "y"),
            "Line 4 of the patch ('y'): every line of the new file `f` begins with `+`.",
        ),
        (
            patch("*** Delete File: f", "-x"),
            "Line 3 of the patch ('-x'): nothing may follow on a deletion.",
        ),
        (
            patch("*** Update File: f"),
            "The update of `f` says nothing: give it a hunk, or leave it out.",
        ),
        (
            patch("*** Delete File: " + " " * 100_000),
            "Line 2 of the patch ('*** Delete File:" + " " * 64 + "') stands before the first "
            "file's header.",
        ),
        (
            patch("*** Update File: f", "*** Move to: "),
            "The update of `f` says nothing: give it a hunk, or leave it out.",
        ),
        (
            patch("*** Update File: f", "@@", "*** Delete File: g"),
            "The hunk at line 3 of the patch has no lines.",
        ),
        (
            patch("*** Update File: f", "*** End of File"),
            "The hunk at line 3 of the patch has no lines.",
        ),
        (
            patch("*** Update File: f", "x"),
            "Line 3 of the patch ('x'): it must begin with a space, `+`, `-` or `@@`.",
        ),
        (
            patch("*** Update File: f", " x", "*** Rename File: g"),
            "Line 4 of the patch ('*** Rename File: g') is no line of a hunk and no header.",
        ),
    ],
)
def test_a_parse_error_names_its_line(text: str, sentence: str) -> None:
    assert unreadable(text) == sentence
