"""Calls of the file editor as a model makes them."""

from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings

from perdure.events.content import join_text
from perdure.events.observations import FileEditorObservation
from perdure.tools.file_editor import FILE_EDITOR, parse
from tests.tools.conftest import ToolBench

ON_ONE_WORKSPACE = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None
)


async def run_editor(
    place: ToolBench, command: str, path: str, **arguments: Any
) -> FileEditorObservation:
    action = parse({"command": command, "path": path, **arguments})
    observation = await FILE_EDITOR.run(action, place.context)
    assert isinstance(observation, FileEditorObservation)
    assert observation.command == command
    return observation


async def edit_ok(place: ToolBench, command: str, path: str, **arguments: Any) -> str:
    observation = await run_editor(place, command, path, **arguments)
    assert not observation.is_error, join_text(observation.content)
    return join_text(observation.content)


async def edit_refused(place: ToolBench, command: str, path: str, **arguments: Any) -> str:
    before = contents(place.workspace)
    observation = await run_editor(place, command, path, **arguments)
    assert observation.is_error
    assert observation.path == path
    assert contents(place.workspace) == before
    return join_text(observation.content)


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
