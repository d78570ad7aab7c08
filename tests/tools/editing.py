"""Calling the file editor as a model does."""

from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings

from events.content import text_of
from events.observations import FileEditorObservation
from tests.tools.conftest import Place
from tools.file_editor import FILE_EDITOR, parse

ON_ONE_WORKSPACE = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None
)


async def do(place: Place, command: str, path: str, **arguments: Any) -> FileEditorObservation:
    action = parse({"command": command, "path": path, **arguments})
    observation = await FILE_EDITOR.run(action, place.context)
    assert isinstance(observation, FileEditorObservation)
    assert observation.command == command
    return observation


async def done(place: Place, command: str, path: str, **arguments: Any) -> str:
    observation = await do(place, command, path, **arguments)
    assert not observation.is_error, text_of(observation.content)
    return text_of(observation.content)


async def refused(place: Place, command: str, path: str, **arguments: Any) -> str:
    before = contents(place.workspace)
    observation = await do(place, command, path, **arguments)
    assert observation.is_error
    assert observation.path == path
    assert contents(place.workspace) == before
    return text_of(observation.content)


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
