"""The real command, run as a process."""

import asyncio
import contextlib
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perdure.storage.conversations import conversation_exists
from perdure.storage.store import Store
from tests.cli.fork_server import ForkedCommand, may_fork

PERDURE_COMMAND = (sys.executable, "-m", "perdure.cli.main")

HOLD = "touch held; until [ -e go ]; do sleep 0.02; done"
"""Shell commands that end when the test calls `release`."""


@dataclass(frozen=True)
class CompletedCommand:
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def error(self) -> dict[str, str]:
        error: dict[str, str] = self.json["error"]
        return error


@dataclass(frozen=True)
class Perdure:
    """The command with the environment variables `env`."""

    env: Mapping[str, str]

    def with_env(self, **env: str) -> "Perdure":
        """Return the command with other variables."""
        return Perdure({**self.env, **env})

    def without_env(self, *names: str) -> "Perdure":
        return Perdure({name: value for name, value in self.env.items() if name not in names})

    async def __call__(self, *args: str, stdin: str = "") -> CompletedCommand:
        if may_fork(self.env, stdin):
            code, out, err = await ForkedCommand().run(args, self.env, stdin.encode())
            return CompletedCommand(code, out.decode(), err.decode())
        async with self.start(*args) as process:
            out, err = await process.communicate(stdin.encode())
        assert process.returncode is not None
        return CompletedCommand(process.returncode, out.decode(), err.decode())

    @contextlib.asynccontextmanager
    async def start(self, *args: str) -> AsyncIterator[asyncio.subprocess.Process]:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *PERDURE_COMMAND, *args, env=self.env, stdin=pipe, stdout=pipe, stderr=pipe
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


async def interrupt(process: asyncio.subprocess.Process) -> CompletedCommand:
    """Send ^C and wait for the end."""
    process.send_signal(signal.SIGINT)
    out, err = await process.communicate()
    assert process.returncode is not None
    return CompletedCommand(process.returncode, out.decode(), err.decode())


def find_address(line: str) -> str:
    """Return the address of a gateway in the line of its log that has it."""
    found = re.search(r"http://[\w.:]+", line)
    assert found is not None, line
    return found[0]


async def wait_for_line(reader: asyncio.StreamReader | None, text: str) -> str:
    """Read up to the first line that contains `text`, and return it."""
    assert reader is not None
    lines = ""
    while line := (await reader.readline()).decode():
        if text in line:
            return line
        lines += line
    raise AssertionError(f"{text!r} was never printed: {lines}")


async def wait_until_recorded(store: Store, name: str) -> None:
    """Wait until a worker has taken the conversation up."""
    while not await conversation_exists(store, "local", name):
        await asyncio.sleep(0.02)


async def release(perdure: Perdure) -> None:
    """Wait until a command of the worker is at HOLD, and end it."""
    folder = Path(perdure.env["PERDURE_DATA"])
    while not (held := list(folder.glob("workspaces/**/held"))):
        await asyncio.sleep(0.02)
    for path in held:
        path.with_name("go").touch()
        path.unlink()


def tool_call_answer(name: str, **arguments: Any) -> dict[str, Any]:
    """Make an answer of a script that calls a tool."""
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


def model_options(path: str) -> tuple[str, str]:
    """Return the options by which the worker plays a script itself."""
    return "--model", f"scripted:{path}"


def clean_environment() -> dict[str, str]:
    """Return the environment without the variables that perdure reads."""
    foreign = ("PERDURE_", "TEMPORAL_", "AWS_", "OPENAI_", "ANTHROPIC_", "COLUMNS", "LINES")
    return {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
