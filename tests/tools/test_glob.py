"""Files are found by their names."""

import os
from pathlib import Path
from typing import Any

import pytest

from perdure.events.observations import MCPToolObservation
from perdure.tools.glob import GLOB
from tests.tools.conftest import ToolBench
from tests.tools.searching import fill, refusal, run_tool, write


async def test_files_are_named_from_the_workspace_on_and_the_newest_first(place: ToolBench) -> None:
    fill(place.workspace, a__old="", b="", a__new="", a__c__newest="")
    assert await run_tool(GLOB, place, pattern="**/*") == "a/c/newest\na/new\nb\na/old"
    assert await run_tool(GLOB, place, pattern="*", path="a") == "a/c/newest\na/new\na/old"
    assert await run_tool(GLOB, place, pattern="./*", path="a") == "a/new\na/old"
    assert await run_tool(GLOB, place, pattern="{b,new}") == "a/new\nb"


async def test_an_absolute_pattern_and_path_in_the_workspace_are_understood(
    place: ToolBench,
) -> None:
    fill(place.workspace, src__a="", src__b="")
    assert await run_tool(GLOB, place, pattern=f"{place.workspace}/src/a") == "src/a"
    assert await run_tool(GLOB, place, pattern="a", path=str(place.workspace / "src")) == "src/a"


async def test_of_many_files_a_hundred_are_named(place: ToolBench) -> None:
    for number in range(103):
        write(place.workspace, f"{number:03}", "", age=number)
    *rows, note = (await run_tool(GLOB, place, pattern="*")).splitlines()
    assert rows == [f"{number:03}" for number in range(102, 2, -1)]
    assert note == "[3 more match: use a narrower pattern or `path`]"


async def test_nothing_found_is_told(place: ToolBench) -> None:
    assert await run_tool(GLOB, place, pattern="*.py") == "No file matches `*.py` in `.`."


async def test_a_name_that_is_no_text_can_be_told(place: ToolBench) -> None:
    Path(os.fsdecode(os.fsencode(place.workspace) + b"/a\xff")).touch()
    observation = await GLOB.run(GLOB.parse({"pattern": "*"}), place.context)
    assert isinstance(observation, MCPToolObservation)
    assert observation.tool_name == "glob"
    assert "a�" in observation.model_dump_json()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"pattern": "*", "path": ".."}, "`..` leads out of the workspace"),
        ({"pattern": "*", "path": "/etc"}, "`/etc` leads out of the workspace"),
        ({"pattern": "*", "path": "out"}, "`out` leads out of the workspace"),
        ({"pattern": "*", "path": "none"}, "`none` is not a directory."),
        ({"pattern": "*", "path": "f"}, "`f` is not a directory."),
        ({"pattern": "../*"}, "The pattern '../*' must not hold `..`"),
    ],
)
async def test_what_cannot_be_searched_is_refused(
    place: ToolBench, arguments: dict[str, Any], sentence: str
) -> None:
    (place.workspace / "out").symlink_to("/etc")
    (place.workspace / "f").touch()
    assert sentence in await refusal(GLOB, place, **arguments)


async def test_nothing_outside_is_found_behind_a_link(place: ToolBench) -> None:
    write(place.workspace.parent / "outside", "secret", "")
    (place.workspace / "out").symlink_to(place.workspace.parent / "outside")
    assert "secret" not in await run_tool(GLOB, place, pattern="**/*")
    assert await run_tool(GLOB, place, pattern="/etc/*") == "No file matches `/etc/*` in `.`."


def test_looking_may_be_repeated() -> None:
    annotations = GLOB.definition.annotations
    assert (annotations.readOnlyHint, annotations.openWorldHint) == (True, False)
    assert annotations.repeatable
    assert list(GLOB.definition.parameters["properties"]) == ["pattern", "path"]
