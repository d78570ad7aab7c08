"""Files, images and directories are shown within limits."""

import base64
import os
from pathlib import Path
from typing import Any

import pytest

from perdure.events.content import ImageContent, TextContent, join_text
from perdure.tools import listing
from perdure.tools.editing.text_file import MAX_FILE_BYTES
from tests.tools.conftest import ToolBench
from tests.tools.editing import edit_ok, edit_refused, run_editor


async def test_a_file_is_shown_with_numbered_lines(place: ToolBench) -> None:
    (place.workspace / "f").write_text("one\n\ttwo\nthree")
    assert await edit_ok(place, "view", "f") == "     1\tone\n     2\t\ttwo\n     3\tthree"
    assert await edit_ok(place, "view", str(place.workspace / "f")) == await edit_ok(
        place, "view", "f"
    )


async def test_an_empty_file_says_so(place: ToolBench) -> None:
    (place.workspace / "f").touch()
    assert await edit_ok(place, "view", "f") == "(the file is empty)"


@pytest.mark.parametrize(
    ("view_range", "numbers"),
    [([2, 3], [2, 3]), ([1, 1], [1]), ([4, -1], [4, 5]), ([4, 99], [4, 5]), ("[1, 2]", [1, 2])],
)
async def test_a_range_of_lines_is_shown(
    place: ToolBench, view_range: object, numbers: list[int]
) -> None:
    (place.workspace / "f").write_text("a\nb\nc\nd\ne\n")
    page = await edit_ok(place, "view", "f", view_range=view_range)
    assert [int(line.split("\t")[0]) for line in page.splitlines()] == numbers


@pytest.mark.parametrize("view_range", [[0, 1], [3, 3], [2, 1], [-1, -1], [1, -2]])
async def test_a_range_without_lines_is_refused(place: ToolBench, view_range: list[int]) -> None:
    (place.workspace / "f").write_text("a\nb\n")
    assert await edit_refused(place, "view", "f", view_range=view_range) == (
        f"`view_range` {view_range} names no lines: `f` has 2, counted from 1, and the first must "
        "not be after the last."
    )


async def test_a_long_file_is_cut_between_lines(place: ToolBench) -> None:
    (place.workspace / "f").write_text("".join(f"line {n}\n" for n in range(1, 10_001)))
    *lines, note = (await edit_ok(place, "view", "f")).splitlines()
    assert 25_000 < sum(map(len, lines)) <= 30_000
    assert lines[-1].endswith(f"line {len(lines)}")
    assert note == (f"[lines {len(lines) + 1} to 10000 are left out: use `view_range` to see them]")


async def test_a_very_long_line_is_cut(place: ToolBench) -> None:
    (place.workspace / "f").write_text("x" * 50_000 + "\nnext\n")
    first, note = (await edit_ok(place, "view", "f")).splitlines()
    assert first.endswith("xxx[20,007 more characters of this line are left out]")
    assert note == "[lines 2 to 2 are left out: use `view_range` to see them]"


async def test_a_directory_is_listed_two_levels_deep(place: ToolBench) -> None:
    (place.workspace / "src/deep/deeper").mkdir(parents=True)
    (place.workspace / "src/main.py").touch()
    (place.workspace / "src/.hidden").touch()
    (place.workspace / "empty").mkdir()
    (place.workspace / ".git").mkdir()
    (place.workspace / "way out").symlink_to("/etc")
    assert await edit_ok(place, "view", ".") == (
        "empty/\nsrc/\nsrc/deep/\nsrc/main.py\nway out -> /etc\n[1 hidden entries are not shown]"
    )
    assert await edit_ok(place, "view", "empty") == "(empty)"
    assert await edit_refused(place, "view", "src", view_range=[1, 2]) == (
        "`src` is a directory, so leave out `view_range`."
    )


async def test_a_large_directory_is_cut_after_a_thousand_entries(place: ToolBench) -> None:
    for number in range(1_003):
        (place.workspace / f"{number:04}").touch()
    *entries, note = (await edit_ok(place, "view", ".")).splitlines()
    assert (len(entries), entries[-1]) == (1_000, "0999")
    assert note == "[3 more are left out: view a directory further down]"


async def test_names_that_are_no_text_are_shown_as_far_as_they_go(place: ToolBench) -> None:
    (Path(os.fsdecode(os.fsencode(place.workspace) + b"/a\xff"))).touch()
    observation = await run_editor(place, "view", ".")
    assert join_text(observation.content) == "a�"
    assert observation.model_dump_json()


@pytest.mark.parametrize("command", ["view", "str_replace", "insert"])
async def test_a_binary_file_is_refused(place: ToolBench, command: str) -> None:
    arguments: dict[str, dict[str, Any]] = {
        "view": {},
        "str_replace": {"old_str": "a", "new_str": "b"},
        "insert": {"insert_line": 0, "new_str": "b"},
    }
    given_ = arguments[command]
    (place.workspace / "compressed").write_bytes(b"ab\xff\x05")
    (place.workspace / "binary").write_bytes(b"a\0b")
    assert await edit_refused(place, command, "compressed", **given_) == (
        "`compressed` is a binary file: byte 2 is not UTF-8, and it holds control characters."
    )
    assert await edit_refused(place, command, "binary", **given_) == (
        "`binary` is a binary file: it holds NUL bytes."
    )
    os.mkfifo(place.workspace / "pipe")
    assert await edit_refused(place, command, "pipe", **given_) == "`pipe` is not a regular file."
    with (place.workspace / "large").open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    assert await edit_refused(place, command, "large", **given_) == (
        "`large` has 10,485,761 bytes, and at most 10,485,760 can be opened: use commands that "
        "read a part of it."
    )


PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


async def test_an_image_is_shown_as_one(place: ToolBench) -> None:
    (place.workspace / "pixel.dat").write_bytes(PIXEL)
    observation = await run_editor(place, "view", "pixel.dat")
    caption, image = observation.content
    assert isinstance(caption, TextContent)
    assert caption.text == f"`pixel.dat` is an image (image/png, {len(PIXEL)} bytes):"
    assert isinstance(image, ImageContent)
    kind, _, data = image.image_urls[0].partition(",")
    assert (kind, base64.b64decode(data)) == ("data:image/png;base64", PIXEL)


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
    ],
)
async def test_an_image_is_detected_by_its_content(
    place: ToolBench, head: bytes, kind: str
) -> None:
    (place.workspace / "f").write_bytes(head)
    assert f"({kind}, " in await edit_ok(place, "view", "f")


async def test_an_image_that_no_provider_takes_is_refused(place: ToolBench) -> None:
    with (place.workspace / "large.png").open("wb") as file:
        file.write(PIXEL)
        file.truncate(listing.MAX_IMAGE_BYTES + 1)
    assert await edit_refused(place, "view", "large.png") == (
        "`large.png` is an image of 5,242,881 bytes, and at most 5,242,880 can be shown: make a "
        "smaller one."
    )


async def test_a_missing_file_says_so(place: ToolBench) -> None:
    observation = await run_editor(place, "view", "no/such")
    assert observation.is_error
    assert not observation.prev_exist
    assert join_text(observation.content) == "`no/such` does not exist."
