"""No path leaves the workspace."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.events.content import join_text
from tests.tools.conftest import ToolBench
from tests.tools.editing import ON_ONE_WORKSPACE, edit_ok, edit_refused, run_editor

ESCAPES = [
    "../outside/secret",
    "..",
    "/etc/passwd",
    "a/../../outside/secret",
    "link/secret",
    "file_link",
    "chain/secret",
    "dangling",
    "a/up/../../outside/secret",
    "../workspace2/secret",
]


@pytest.fixture
def trap(place: ToolBench) -> Path:
    """A secret beside the workspace, and every sort of link to it."""
    outside = place.workspace.parent / "outside"
    for folder in (outside, place.workspace.parent / "workspace2"):
        folder.mkdir()
        (folder / "secret").write_text("a treasure")
    (place.workspace / "a").mkdir()
    (place.workspace / "a/up").symlink_to("..")
    (place.workspace / "link").symlink_to(outside)
    (place.workspace / "file_link").symlink_to(outside / "secret")
    (place.workspace / "chain").symlink_to("link")
    (place.workspace / "dangling").symlink_to(outside / "new")
    return outside


@pytest.mark.parametrize("path", ESCAPES)
@pytest.mark.parametrize(
    "arguments",
    [
        {"command": "view"},
        {"command": "create", "file_text": "planted"},
        {"command": "str_replace", "old_str": "treasure", "new_str": "planted"},
        {"command": "insert", "insert_line": 0, "new_str": "planted"},
        {"command": "undo_edit"},
    ],
    ids=lambda arguments: arguments["command"],
)
async def test_no_path_leaves_the_workspace(
    place: ToolBench, trap: Path, path: str, arguments: dict[str, Any]
) -> None:
    observation = await run_editor(place, path=path, **arguments)
    assert observation.is_error
    assert join_text(observation.content) == (
        f"`{path}` leads out of the workspace: use a path relative to it, such as `notes.txt` or "
        f"`src/main.py`. The workspace is {place.workspace}."
    )
    assert [entry.name for entry in trap.iterdir()] == ["secret"]
    assert (trap / "secret").read_text() == "a treasure"


@ON_ONE_WORKSPACE
@given(
    st.lists(
        st.sampled_from(["..", ".", "", "a", "up", "link", "chain", "secret", "outside"]),
        max_size=6,
    )
)
async def test_no_sequence_of_steps_reaches_the_secret(
    place: ToolBench, trap: Path, parts: list[str]
) -> None:
    assert (trap / "secret").exists()
    observation = await run_editor(place, "view", "/".join(parts))
    assert "treasure" not in join_text(observation.content)


async def test_links_within_the_workspace_are_followed(place: ToolBench, trap: Path) -> None:
    (place.workspace / "f").write_text(str(trap))
    assert str(trap) in await edit_ok(place, "view", "a/up/f")


async def test_a_workspace_behind_a_link_is_still_one(place: ToolBench, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(place.workspace)
    (place.workspace / "f").write_text("text")
    assert "text" in await edit_ok(place, "view", str(tmp_path / "alias" / "f"))


@pytest.mark.parametrize(
    ("path", "reason"),
    [("loop", "Symlink loop"), ("a\0b", "null byte"), ("x" * 5000, "File name too long")],
)
async def test_a_path_that_leads_nowhere_is_refused(
    place: ToolBench, path: str, reason: str
) -> None:
    (place.workspace / "loop").symlink_to("loop")
    assert reason in await edit_refused(place, "create", path, file_text="x")
