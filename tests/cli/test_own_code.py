"""A worker finds a user's own modules, and finds them again after a change."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from tests.cli.command import Perdure, model_options, tool_call_answer, wait_for_line
from tests.cli.conftest import drain_stderr
from tests.cli.test_programs import run_program

SOURCE = '''
def weather(city: str) -> str:
    """Report the weather in a city."""
    return f"It rains in {city}."
'''


@pytest.mark.long
async def test_a_worker_finds_the_tools_of_a_folder(
    configured: Perdure, tmp_path: Path, script: Callable[..., str]
) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "own_weather.py").write_text(SOURCE)
    path = script(tool_call_answer("weather", city="Oslo"), {"content": "Take an umbrella."})
    perdure = configured.with_env(PERDURE_CODE=str(tmp_path), PERDURE_TASK_QUEUE=f"own-{uuid4()}")
    options = (*model_options(path), "--tools", "tools.own_weather:weather")
    async with perdure.start("worker") as worker:
        await wait_for_line(worker.stderr, "polls")
        done = await perdure("run", "Does it rain?", *options, "-ojsonl")
    assert (done.code, "It rains in Oslo." in done.out) == (0, True), done.out + done.err


USES_A_HELPER = """
from helper import VERB

def weather(city: str) -> str:
    '''Report the weather in a city.'''
    return f"It {VERB} in {city}."
"""

EDITS = """
from pathlib import Path
import perdure
from perdure import Agent, ObservationEvent, TurnFailed

def report(turn):
    seen = [event.observation for event in turn if isinstance(event, ObservationEvent)]
    print(*(item.text for each in seen for item in each.content))

with perdure.SyncClient() as client:
    weather = client.start("Rain?", Agent(model=MODEL, tools=["my_tools:weather"]))
    report(weather.turn())
    for word in ("'snow'", "'hail"):
        Path("helper.py").write_text(f"VERB = {word}\\n")
        weather.send("And now?")
        report(weather.turn())
    try:
        weather.result()
    except TurnFailed as error:
        print(error)
"""


@asynccontextmanager
async def worker_of_clients(configured: Perdure, **env: str) -> AsyncIterator[Perdure]:
    """Run a worker that takes the modules of its clients, as that of `perdure dev` does."""
    perdure = configured.with_env(PERDURE_TASK_QUEUE=f"own-{uuid4()}")
    async with perdure.with_env(**env).start("worker") as worker:
        await wait_for_line(worker.stderr, "polls")
        draining = asyncio.create_task(drain_stderr(worker.stderr))
        yield perdure
        worker.terminate()
        await worker.wait()
        await draining


def write_project(folder: Path, verb: str = "rains") -> Path:
    """Write a project whose other modules have the names of perdure's rooms and of settings."""
    folder.mkdir()
    (folder / "my_tools.py").write_text(USES_A_HELPER)
    (folder / "helper.py").write_text(f"VERB = {verb!r}\n")
    for name in ("tools.py", "models.py", "settings.py"):
        (folder / name).write_text("raise RuntimeError('nobody imports this')\n")
    return folder


@pytest.mark.long
async def test_a_worker_of_one_person_imports_from_the_folder_of_the_client(
    configured: Perdure, tmp_path: Path, script: Callable[..., str]
) -> None:
    path = script(tool_call_answer("weather", city="Oslo"), {"content": "Take an umbrella."})
    options = (*model_options(path), "--tools", "my_tools:weather")
    async with worker_of_clients(configured, PERDURE_CLIENT_CODE="true") as perdure:
        for name, verb in (("one", "rains"), ("two", "snows")):
            project = write_project(tmp_path / name, verb)
            done = await perdure.with_env(PERDURE_CODE=str(project))(
                "run", "Rain?", *options, "-ojsonl"
            )
            assert f"It {verb} in Oslo." in done.out, done.out + done.err


@pytest.mark.long
async def test_any_other_worker_imports_nothing_from_the_folder_of_a_client(
    configured: Perdure, tmp_path: Path, script: Callable[..., str]
) -> None:
    project = write_project(tmp_path / "one")
    options = (*model_options(script({"content": "Hi."})), "--tools", "my_tools:weather")
    async with worker_of_clients(configured) as perdure:
        done = await perdure.with_env(PERDURE_CODE=str(project))("run", "Rain?", *options)
    assert done.code == 1
    assert "module 'my_tools' cannot be found" in done.err
    assert "0 answers of the model" in done.out + done.err


@pytest.mark.long
async def test_what_is_edited_is_in_force_in_the_next_turn(
    configured: Perdure, tmp_path: Path, script: Callable[..., str]
) -> None:
    project = write_project(tmp_path / "one")
    answers = [tool_call_answer("weather", city="Oslo"), {"content": "Take an umbrella."}] * 2
    async with worker_of_clients(configured, PERDURE_CLIENT_CODE="true") as perdure:
        env = perdure.with_env(PERDURE_CODE=str(project)).env
        code, out, err = await run_program(EDITS, env, script(*answers), project)
    assert code == 0, err
    first, second, third, reason = out.splitlines()
    assert (first, second, third) == ("It rains in Oslo.", "It snow in Oslo.", "")
    assert "SyntaxError: unterminated string literal" in reason
    assert f"{project / 'helper.py'}:1" in reason
