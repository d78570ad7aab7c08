"""Hunks are applied at the right position, or the mismatch is explained."""

import difflib
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from perdure.tools.editing.patch import Hunk, PatchError, Update, parse_patch
from perdure.tools.editing.patched import apply_hunks
from perdure.tools.editing.text_file import split_lines
from tests.tools.patching import patch

LINES = st.lists(st.text("ab \t+-@*é", max_size=4), max_size=8)


def update(*lines: str) -> tuple[Hunk, ...]:
    [change] = parse_patch(patch("*** Update File: f", *lines))
    assert isinstance(change, Update)
    return change.hunks


def applied(body: str, *lines: str) -> str:
    return apply_hunks(body, update(*lines), "f").body


def misfit(body: str, *lines: str) -> str:
    with pytest.raises(PatchError) as raised:
        applied(body, *lines)
    return str(raised.value)


CODE = "class A:\n    def go(self):\n        run()\n\nclass B:\n    def go(self):\n        run()\n"


def test_a_hunk_goes_where_its_anchors_say() -> None:
    assert applied(CODE, "@@ class B:", "-        run()", "+        jump()") == (
        CODE[: CODE.rindex("run")] + "jump()\n"
    )
    stacked = ("@@ class B:", "@@     def go(self):", "-        run()", "+        jump()")
    assert applied(CODE, *stacked) == CODE[: CODE.rindex("run")] + "jump()\n"
    assert applied(CODE, "@@", "-        run()", "+        jump()") == (
        CODE.replace("run", "jump", 1)
    )


def test_an_anchor_may_be_a_part_of_its_line() -> None:
    assert applied(CODE, "@@ B", "-        run()") == CODE[: CODE.rindex("        run")]


def test_a_hunk_under_the_same_anchor_goes_on_where_the_one_before_it_ended() -> None:
    body = "def f():\n    a\n    b\ndef g():\n    b\n"
    hunks = ("@@ def f():", "-    a", "+    A", "@@ def f():", "-    b", "+    B")
    assert applied(body, *hunks) == "def f():\n    A\n    B\ndef g():\n    b\n"
    # Not the same anchors, and yet one that was passed already.
    hunks = ("@@ def f():", "-    a", "+    A", "@@ def f()", "-    b", "+    B")
    assert applied(body, *hunks) == "def f():\n    A\n    B\ndef g():\n    b\n"


def test_the_numbers_of_a_unified_diff_are_no_anchor() -> None:
    assert applied("a\nb\n", "@@ -1,2 +1,2 @@ def f():", " a", "-b", "+c") == "a\nc\n"


def test_a_hunk_at_the_end_goes_to_the_end() -> None:
    body = "x\ny\nx\ny\n"
    assert applied(body, " x", "-y", "+z", "*** End of File") == "x\ny\nx\nz\n"
    assert applied(body, " x", "-y", "+z") == "x\nz\nx\ny\n"
    assert applied(body, "+z") == "x\ny\nx\ny\nz\n"
    assert applied(body, "@@ x", "+z") == "x\nz\ny\nx\ny\n"
    assert applied(body, "@@ x", "+z", "*** End of File") == "x\ny\nx\ny\nz\n"


@pytest.mark.parametrize(
    ("body", "old", "after"),
    [
        ("a \t\nb\n", (" a", "-b"), "a \t\n"),
        ("\ta\n\tb\n", (" a", "-b"), "\ta\n"),
        ("“a” — b\u00a0c\nd\n", (' "a" - b c', "-d"), "“a” — b\u00a0c\n"),
    ],
)
def test_a_hunk_fits_loosely_and_what_stays_is_taken_from_the_file(
    body: str, old: tuple[str, ...], after: str
) -> None:
    made = apply_hunks(body, update(*old), "f")
    assert (made.body, made.inexact_hunks) == (after, (1,))


def test_an_exact_place_is_taken_before_a_loose_one() -> None:
    made = apply_hunks("  a\na\n", update("-a"), "f")
    assert (made.body, made.inexact_hunks) == ("  a\n", ())


def test_blank_lines_between_hunks_and_files_mean_nothing() -> None:
    text = patch(
        "*** Update File: f", "", "@@", "-a", "+b", "", "@@", "-c", "", "", "*** End of File"
    )
    [change] = parse_patch(text)
    assert isinstance(change, Update)
    assert apply_hunks("a\nx\nc\n", change.hunks, "f").body == "b\nx\n"


@pytest.mark.parametrize(
    ("body", "after"), [("a", "b"), ("a\n", "b\n"), ("a\n\n", "b\n\n"), ("x\na", "x\nb")]
)
def test_the_end_of_the_file_stays_as_it_was(body: str, after: str) -> None:
    assert applied(body, "-a", "+b") == after


def test_a_file_may_become_empty_and_an_empty_one_may_be_filled() -> None:
    assert applied("a\n", "-a") == ""
    assert applied("", "+a") == "a\n"


def test_a_mismatch_is_reported_with_the_closest_lines() -> None:
    body = "".join(f"line {n}\n" for n in range(1, 30))
    assert misfit(body, " line 1", "@@", " line 19", "-line twenty", "+x", " line 21") == (
        "Hunk 2 of `f` (line 4 of the patch) does not fit: these lines are not in the file after "
        "line 1:\nline 19\nline twenty\nline 21\nThe most like them in it are:\n"
        "    19\tline 19\n    20\tline 20\n    21\tline 21"
    )
    assert misfit(body, *(f"-no {n}" for n in range(20))).endswith(
        "no 11\n...\nThe file has none of them: view it, and copy its lines exactly."
    )
    assert misfit("", "-a").endswith(
        ":\na\nThe file has none of them: view it, and copy its lines exactly."
    )


def test_hunks_out_of_order_are_reported() -> None:
    assert misfit("a\nb\n", "-b", "@@", "-a") == (
        "Hunk 2 of `f` (line 4 of the patch) does not fit: its lines are at line 1, but not after "
        "line 2, where the hunk before it ends: put the hunks in the order of the file, and let "
        "none overlap:\na"
    )


def test_a_missing_anchor_is_reported() -> None:
    assert misfit("a\n", "@@ class C:", "-a") == (
        "Hunk 1 of `f` (line 3 of the patch) does not fit: the file has no line 'class C:', as its "
        "`@@` says."
    )


def hunks(before: Sequence[str], after: Sequence[str], around: int) -> Iterator[str]:
    """The lines of a patch's update that makes `after` of `before`."""
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for group in matcher.get_grouped_opcodes(around):
        yield "@@"
        for tag, start, end, start_after, end_after in group:
            sign = " " if tag == "equal" else "-"
            yield from (sign + line for line in before[start:end])
            if tag != "equal":
                yield from (f"+{line}" for line in after[start_after:end_after])


@given(LINES, LINES, st.booleans())
def test_a_patch_with_the_whole_file_around_makes_of_it_what_it_says(
    before: list[str], after: list[str], ended: bool
) -> None:
    body = "\n".join(before) + ("\n" if before and ended else "")
    assume(split_lines(body) == before != after)
    wanted = "\n".join(after) + ("\n" if after and (ended or not body) else "")
    made = apply_hunks(body, update(*hunks(before, after, 100)), "f")
    assert (made.body, made.inexact_hunks) == (wanted, ())


@given(st.data(), st.integers(1, 3))
def test_a_patch_with_few_lines_around_makes_of_a_file_what_it_says(
    data: st.DataObject, around: int
) -> None:
    before = [f"line {number}" for number in range(data.draw(st.integers(0, 30)))]
    after = list(before)
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(after)))
        end = data.draw(st.integers(start, min(len(after), start + 4)))
        after[start:end] = data.draw(st.lists(st.text("xy ", max_size=3), max_size=3))
    assume(before != after)
    made = apply_hunks(
        "\n".join(before) + "\n" if before else "", update(*hunks(before, after, around)), "f"
    )
    assert made.body == ("\n".join(after) + "\n" if after else "")
