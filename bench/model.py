"""The scripted model of the benches: one tool call an answer, then the end."""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from bench.processes import ROOT
from perdure.testing.script import read_scripts
from perdure.testing.server import serve_scripts


def add(nth: int) -> dict[str, Any]:
    """Another sum each time: an agent that asks for the same again and again is stuck."""
    return {"tool_calls": [{"name": "add", "arguments": {"a": nth, "b": 2}}]}


def steps_script(steps: int, delay: float = 0.0) -> dict[str, Any]:
    """Return a script of so many steps and a last word; each answer takes `delay` seconds."""
    answers = [add(nth) | {"delay": delay} for nth in range(steps)]
    return {"answers": [*answers, {"content": "done"}]}


def steps_scripts(*lengths: int) -> dict[str, Any]:
    """Return a script for each number of steps, `steps-N` by name."""
    return {f"steps-{steps}": steps_script(steps) for steps in lengths}


def write_scripts(file: Path, scripts: Mapping[str, Any]) -> Path:
    file.write_text(json.dumps(scripts))
    return file


@contextlib.asynccontextmanager
async def model_server(file: Path) -> AsyncIterator[str]:
    """The scripts over HTTP, in a process of their own so that its CPU is not counted as ours."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.model", str(file)), stdout=asyncio.subprocess.PIPE, cwd=ROOT
    )
    assert process.stdout is not None
    try:
        yield (await process.stdout.readline()).decode().strip()
    finally:
        with contextlib.suppress(ProcessLookupError):  # ^C ends it too
            process.terminate()
        await process.wait()


async def _serve(path: Path) -> None:
    async with serve_scripts(read_scripts(path)) as address:
        print(address, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1])))
