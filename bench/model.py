"""The scripted model of the benches: one tool call an answer, then the end."""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from perdure.testing.script import read_scripts
from perdure.testing.server import serve_scripts

LENGTHS = (10, 50, 100, 500, 1000)
"""For how many steps there is a script, `steps-N` by name."""


def add(nth: int) -> dict[str, Any]:
    """Another sum each time: an agent that asks for the same again and again is stuck."""
    return {"tool_calls": [{"name": "add", "arguments": {"a": nth, "b": 2}}]}


def write_scripts(folder: Path, *lengths: int) -> Path:
    scripts: dict[str, Any] = {
        f"steps-{steps}": {"answers": [*map(add, range(steps)), {"content": "done"}]}
        for steps in {*LENGTHS, *lengths}
    }
    path = folder / "script.json"
    path.write_text(json.dumps(scripts))
    return path


@contextlib.asynccontextmanager
async def model_server(folder: Path, *lengths: int) -> AsyncIterator[str]:
    """The scripts over HTTP, in a process of their own so that its CPU is not counted as ours."""
    path = write_scripts(folder, *lengths)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.model", str(path), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        yield (await process.stdout.readline()).decode().strip()
    finally:
        process.terminate()
        await process.wait()


async def _serve(path: Path) -> None:
    async with serve_scripts(read_scripts(path)) as address:
        print(address, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1])))
