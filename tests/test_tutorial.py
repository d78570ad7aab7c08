"""The tutorial, followed step by step: its files are written and its commands are run."""

import asyncio
import json
import re
import shlex
import sys
from asyncio.subprocess import PIPE
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from perdure.embedded.temporal import TemporalServer
from tests.cli.command import PERDURE_COMMAND, clean_environment, tool_call_answer, wait_for_line
from tests.cli.conftest import drain_stderr

ROOT = Path(__file__).parents[1]

STEP = re.compile(r"^```\w+\n# (\S+)\n(.*?)^```$|^    (\S[^\n]*)$", re.MULTILINE | re.DOTALL)

MODEL = "anthropic/claude-sonnet-4-5"

LEFT_OUT = re.compile(r"git|cd|make|export|mkdir|kill|perdure dev|perdure chat")
"""Commands for which the test has a stack, a folder and a terminal already, or not at all."""

SCRIPTS: Mapping[str, tuple[dict[str, Any], ...]] = {
    "perdure run 'Write": (
        tool_call_answer("terminal", command="echo 'print(\"Hello\")' > hello.py"),
        tool_call_answer("terminal", command="python3 hello.py"),
        {"content": "It prints Hello."},
        {"content": "Bonjour."},
    ),
    "perdure run 'How": (tool_call_answer("rain", city="Oslo"), {"content": "12.5 mm in Oslo."}),
    "perdure batch run": ({"content": "It rains 12.5 mm today."},),
    "python ask.py": (tool_call_answer("rain", city="Lisbon"), {"content": "Not at all: 0.0 mm."}),
}
"""The answers of the model from each command on."""

OUTPUTS: Mapping[str, str] = {
    "perdure show": "It prints Hello.",
    "perdure send": "Bonjour.",
    "perdure run 'How": "12.5 mm in Oslo.",
    "perdure batch results": "0.5",
    "python ask.py": "Not at all: 0.0 mm.",
}
"""What each command prints among other things."""


def value_for(command: str, table: Mapping[str, Any]) -> Any:
    return next((value for start, value in table.items() if command.startswith(start)), None)


@pytest.mark.long
async def test_the_tutorial_leads_where_it_says(
    temporal_server: TemporalServer, tmp_path: Path
) -> None:
    folder, model = tmp_path / "weather", tmp_path / "model.json"
    folder.mkdir()
    env = {
        **clean_environment(),
        "TEMPORAL_ADDRESS": temporal_server.address,
        "PERDURE_STORE": (tmp_path / "store").as_uri(),
        "PERDURE_TASK_QUEUE": f"tutorial-{uuid4()}",
        "PERDURE_DATA": str(tmp_path / "data"),
        "PERDURE_MODEL": f"scripted:{model}",
        "PYTHONPATH": str(ROOT),
    }
    worker = await asyncio.create_subprocess_exec(
        *PERDURE_COMMAND, "worker", cwd=folder, env=env, stderr=PIPE
    )
    await wait_for_line(worker.stderr, "polls")
    draining = asyncio.create_task(drain_stderr(worker.stderr))
    try:
        for file, text, line in STEP.findall((ROOT / "docs" / "tutorial.md").read_text()):
            if file:
                (folder / file).write_text(text.replace(MODEL, f"scripted:{model}"))
            elif not LEFT_OUT.match(line):
                await follow_step(line, folder, model, env)
    finally:
        worker.terminate()
        await worker.wait()
        await draining
    assert (folder / "hello.py").read_text() == 'print("Hello")\n'
    assert (folder / "rain.html").stat().st_size > 1000


async def follow_step(line: str, folder: Path, model: Path, env: Mapping[str, str]) -> None:
    """Run a command of the tutorial as a person would."""
    words = shlex.split(line)
    command = shlex.join(words)
    if (answers := value_for(command, SCRIPTS)) is not None:
        model.write_text(json.dumps({"answers": answers}))
    programs = {"perdure": PERDURE_COMMAND, "python": (sys.executable,)}
    process = await asyncio.create_subprocess_exec(
        *programs[words[0]], *words[1:], cwd=folder, env=env, stdout=PIPE, stderr=PIPE
    )
    output, errors = await process.communicate()
    assert process.returncode == 0, f"{command}\n{(output + errors).decode()}"
    assert (value_for(command, OUTPUTS) or "") in output.decode(), command
