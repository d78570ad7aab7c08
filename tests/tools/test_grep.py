"""Lines are found in files, and no pattern and no file can keep the search from ending."""

from typing import Any

import pytest

from perdure.tools.grep import GREP
from tests.tools.conftest import ToolBench
from tests.tools.searching import fill, refusal, run_tool, write


async def test_lines_are_told_with_their_file_and_number(place: ToolBench) -> None:
    fill(place.workspace, old="x = 1\ny\n", src__new="def x():\n    pass\n\treturn x")
    assert await run_tool(GREP, place, pattern=r"\bx\b") == (
        "src/new:1:def x():\nsrc/new:3:\treturn x\nold:1:x = 1"
    )
    assert await run_tool(GREP, place, pattern=r"^x", path="old") == "old:1:x = 1"
    assert await run_tool(GREP, place, pattern="x", path="src") == (
        "src/new:1:def x():\nsrc/new:3:\treturn x"
    )


async def test_only_the_files_are_told(place: ToolBench) -> None:
    fill(place.workspace, a="x\nx\n", b="y", c="x")
    assert await run_tool(GREP, place, pattern="x", output_mode="files_with_matches") == "c\na"


async def test_only_some_files_are_looked_into(place: ToolBench) -> None:
    for name in ("a.py", "src/b.py", "src/c.ts"):
        write(place.workspace, name, "x")
    assert await run_tool(GREP, place, pattern="x", include="*.ts") == "src/c.ts:1:x"
    assert await run_tool(GREP, place, pattern="x", include="*.py", path="src") == "src/b.py:1:x"
    assert "`..`" in await refusal(GREP, place, pattern="x", include="../*")


async def test_letters_match_in_any_case_if_asked(place: ToolBench) -> None:
    fill(place.workspace, f="Word\n")
    assert await run_tool(GREP, place, pattern="word") == "Nothing matches in 1 file."
    assert await run_tool(GREP, place, pattern="word", ignore_case=True) == "f:1:Word"


async def test_lines_around_a_match_are_shown_once(place: ToolBench) -> None:
    fill(place.workspace, f="".join(f"{n}\n" for n in range(1, 20)), g="5\n")
    assert await run_tool(GREP, place, pattern="^(5|7|15)$", context_lines=1) == (
        "g:1:5\n--\nf-4-4\nf:5:5\nf-6-6\nf:7:7\nf-8-8\n--\nf-14-14\nf:15:15\nf-16-16"
    )


async def test_as_many_results_are_shown_as_are_asked_for(place: ToolBench) -> None:
    fill(place.workspace, a="x\n" * 5, b="x\n" * 3)
    *rows, note = (await run_tool(GREP, place, pattern="x", max_results=4)).splitlines()
    assert rows == ["b:1:x", "b:2:x", "b:3:x", "a:1:x"]
    assert note == (
        "[These are the first 4 lines, and there may be more: use a narrower pattern, `path` or "
        "`include`]"
    )
    text = await run_tool(GREP, place, pattern="x", max_results=1, output_mode="files_with_matches")
    assert text.splitlines()[0] == "b"
    assert text.splitlines()[1].startswith("[These are the first 1 files, and there may be more")


async def test_however_much_matches_no_more_is_told_than_fits(place: ToolBench) -> None:
    fill(place.workspace, f=("x" * 1000 + "\n") * 1000)
    text = await run_tool(GREP, place, pattern="x", max_results=1000)
    assert 25_000 < len(text) < 26_000
    assert "there may be more" in text


async def test_of_a_long_line_the_part_around_the_match_is_shown(place: ToolBench) -> None:
    fill(place.workspace, f="a" * 5000 + "needle" + "b" * 5000, g="needle" + "b" * 5000)
    lines = (await run_tool(GREP, place, pattern="needle")).splitlines()
    assert lines[0] == "g:1:needle" + "b" * 394 + "…"
    assert lines[1].startswith("f:1:…aaa")
    assert "aneedleb" in lines[1]
    assert len(lines[1]) == len("f:1:……") + 400


async def test_a_line_that_is_too_long_is_left_out(place: ToolBench) -> None:
    fill(place.workspace, f="needle" * 1024 * 1024 + "\nneedle\n")
    lines = (await run_tool(GREP, place, pattern="needle")).splitlines()
    assert lines == ["f:2:needle", "[1 line is too long to be shown]"]


async def test_binary_and_ignored_files_are_left_out(place: ToolBench) -> None:
    (place.workspace / "binary").write_bytes(b"x\0x")
    (place.workspace / "latin").write_bytes(b"\xe9 x\r\n")
    for name in (".git/x", "build/x"):
        write(place.workspace, name, "x")
    write(place.workspace, ".gitignore", "build")
    assert await run_tool(GREP, place, pattern="x$") == "latin:1:� x"
    assert await run_tool(GREP, place, pattern="x", path="build") == "build/x:1:x"
    assert await run_tool(GREP, place, pattern="x", path=".git/x") == ".git/x:1:x"


async def test_nothing_is_found_behind_a_link_that_leads_out(place: ToolBench) -> None:
    write(place.workspace.parent / "outside", "secret", "a treasure")
    (place.workspace / "folder").symlink_to(place.workspace.parent / "outside")
    (place.workspace / "file").symlink_to(place.workspace.parent / "outside/secret")
    assert await run_tool(GREP, place, pattern="treasure") == "Nothing matches in 0 files."


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"path": ".."}, "`..` leads out of the workspace"),
        ({"path": "file"}, "`file` leads out of the workspace"),
        ({"path": "/etc/passwd"}, "`/etc/passwd` leads out of the workspace"),
        ({"path": "none"}, "`none` does not exist."),
        ({"pattern": "a("}, "`a(` is not a regular expression: "),
    ],
)
async def test_what_cannot_be_searched_is_refused(
    place: ToolBench, arguments: dict[str, Any], sentence: str
) -> None:
    (place.workspace / "file").symlink_to("/etc/passwd")
    assert sentence in await refusal(GREP, place, **{"pattern": "x", **arguments})


async def test_a_pattern_that_backtracks_for_ever_is_given_up(place: ToolBench) -> None:
    fill(place.workspace, f="fine\n" + "a" * 100 + "b\n")
    assert await run_tool(GREP, place, pattern="(a|aa)+$") == "Nothing matches in 1 file."
    assert await refusal(GREP, place, pattern="(?=a)(a|aa)+$") == (
        "The pattern takes too long: use one without repeats of repeats, such as `(a+)+`."
    )


async def test_patterns_may_look_around_and_back(place: ToolBench) -> None:
    fill(place.workspace, f="ab\nbb\nac\n")
    assert await run_tool(GREP, place, pattern=r"(?<=a)b|(?P<x>b)(?P=x)") == "f:1:ab\nf:2:bb"


def test_looking_may_be_repeated() -> None:
    annotations = GREP.definition.annotations
    assert (annotations.readOnlyHint, annotations.openWorldHint) == (True, False)
    assert annotations.repeatable
    assert list(GREP.definition.parameters["required"]) == ["pattern"]
