"""A server of the Model Context Protocol as a process of ours, spoken to through its pipes."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from mcp.client.stdio import StdioServerParameters, stdio_client

SAID = 2_000
"""Bytes of a server's standard error that are kept, from its end."""

PATIENCE = 0.5
"""Seconds for the last words of a server that is gone to arrive."""

# Not `-m`, which would put the working directory, the agent's own, before Python's modules.
_KEEPER = """\
import sys
sys.path.append(sys.argv[1])
from tools.mcp.keeper import main
sys.exit(main(int(sys.argv[2]), sys.argv[3:]))
"""


class LastWords(asyncio.Protocol):
    """The end of what a server wrote to its standard error."""

    def __init__(self) -> None:
        self._said = b""
        self.over = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self._said = (self._said + data)[-SAID:]

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002
        self.over.set()

    def __str__(self) -> str:
        return self._said.decode(errors="replace").strip()


@asynccontextmanager
async def stdio(
    command: list[str], folder: Path, environment: dict[str, str], words: LastWords
) -> AsyncIterator[tuple[Any, Any]]:
    """The streams to and from a server that runs as long as this is open, and no longer.

    The protocol's client adds a few names of its own to `environment`, such as HOME and PATH.
    """
    arguments = [str(Path(__file__).parents[2]), str(os.getpid()), *command]
    process = StdioServerParameters(
        command=sys.executable,
        args=["-I", "-S", "-c", _KEEPER, *arguments],
        env=environment,
        cwd=folder,
        encoding_error_handler="replace",
    )
    reading, writing = os.pipe()
    pipe, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: words, os.fdopen(reading, "rb", buffering=0)
    )
    try:
        with os.fdopen(writing, "w") as errors:
            async with stdio_client(process, errors) as streams:
                errors.close()
                yield streams
    finally:
        with anyio.move_on_after(PATIENCE, shield=True):
            await words.over.wait()
        pipe.close()
