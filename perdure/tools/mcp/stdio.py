"""The stdio transport to an MCP server, which runs as a process of the worker."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from mcp.client.stdio import StdioServerParameters, stdio_client

MAX_STDERR_BYTES = 2_000
"""The end of a server's standard error that is kept."""
STDERR_TIMEOUT = 0.5
"""Seconds for the rest of standard error to arrive once the server is gone."""

# Not `-m`, which would put the working directory, the agent's, before Python's own modules.
_REAPER_PROGRAM = """\
import sys
sys.path.append(sys.argv[1])
from perdure.tools.mcp.subprocess_reaper import main
sys.exit(main(int(sys.argv[2]), sys.argv[3:]))
"""


class StderrTail(asyncio.Protocol):
    """The last bytes of a server's standard error."""

    def __init__(self) -> None:
        self._tail = b""
        self.closed = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self._tail = (self._tail + data)[-MAX_STDERR_BYTES:]

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002
        self.closed.set()

    def __str__(self) -> str:
        return self._tail.decode(errors="replace").strip()


@asynccontextmanager
async def stdio_transport(
    command: list[str], folder: Path, environment: dict[str, str], stderr: StderrTail
) -> AsyncIterator[tuple[Any, Any]]:
    """Start a server and open its streams; the server ends with the `with` block.

    The MCP client adds a few variables of its own to `environment`, such as HOME and PATH.
    """
    arguments = [str(Path(__file__).parents[3]), str(os.getpid()), *command]
    process = StdioServerParameters(
        command=sys.executable,
        args=["-I", "-S", "-c", _REAPER_PROGRAM, *arguments],
        env=environment,
        cwd=folder,
        encoding_error_handler="replace",
    )
    reading, writing = os.pipe()
    loop, file = asyncio.get_running_loop(), os.fdopen(reading, "rb", buffering=0)
    pipe, _ = await loop.connect_read_pipe(lambda: stderr, file)
    try:
        with os.fdopen(writing, "w") as errors:
            async with stdio_client(process, errors) as streams:
                errors.close()
                yield streams
    finally:
        with anyio.move_on_after(STDERR_TIMEOUT, shield=True):
            await stderr.closed.wait()
        pipe.close()
