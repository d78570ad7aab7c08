"""A worker finds a user's own modules in the folder of PERDURE_CODE."""

from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

from tests.cli.command import Perdure, model_options, tool_call_answer, wait_for_line

SOURCE = '''
def weather(city: str) -> str:
    """Report the weather in a city."""
    return f"It rains in {city}."
'''


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
