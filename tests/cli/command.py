"""The real command, as a person or a program runs it."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from storage.conversations import exists
from storage.store import Store

COMMAND = (sys.executable, "-m", "cli.main")


@dataclass(frozen=True)
class Ended:
    """What a command left behind."""

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
    """The command in an environment of its own."""

    env: Mapping[str, str]

    def where(self, **env: str) -> "Perdure":
        """The same, with other variables."""
        return Perdure({**self.env, **env})

    def without(self, *names: str) -> "Perdure":
        return Perdure({name: value for name, value in self.env.items() if name not in names})

    async def __call__(self, *args: str, stdin: str = "") -> Ended:
        async with self.started(*args) as process:
            out, err = await process.communicate(stdin.encode())
        assert process.returncode is not None
        return Ended(process.returncode, out.decode(), err.decode())

    @contextlib.asynccontextmanager
    async def started(self, *args: str) -> AsyncIterator[asyncio.subprocess.Process]:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *COMMAND, *args, env=self.env, stdin=pipe, stdout=pipe, stderr=pipe
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


async def interrupted(process: asyncio.subprocess.Process) -> Ended:
    """^C, and what comes of it."""
    process.send_signal(signal.SIGINT)
    out, err = await process.communicate()
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), err.decode())


async def line_with(reader: asyncio.StreamReader | None, text: str) -> str:
    """The first line from here on that holds `text`."""
    assert reader is not None
    while line := (await reader.readline()).decode():
        if text in line:
            return line
    raise AssertionError(f"{text!r} was never printed")


async def until_recorded(store: Store, name: str) -> None:
    """Wait until a worker has taken the conversation up."""
    while not await exists(store, "local", name):
        await asyncio.sleep(0.02)


def calls(name: str, **arguments: Any) -> dict[str, Any]:
    """An answer of a script that calls a tool."""
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


def scripted(path: str) -> tuple[str, str]:
    """The options by which the worker plays a script itself."""
    return "--model", f"scripted:{path}"


def clean_environment() -> dict[str, str]:
    """The environment without anything that decides what perdure uses."""
    foreign = ("PERDURE_", "TEMPORAL_", "AWS_", "OPENAI_", "ANTHROPIC_")
    return {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
