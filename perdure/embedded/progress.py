"""The lines that a person sees while a stack starts."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import NoReturn

PROGRESS_INTERVAL = 2.5
POLL_INTERVAL = 0.1

LINE = re.compile(rb"\S+ \S+ (?P<level>[A-Z]+) (?P<message>.*)\n")
READY = re.compile(r"worker \d+ polls ")
SANDBOX = re.compile(r"commands run in the sandbox (.+)")
LOADING = "loading the model libraries"
"""The beginning of the line that a worker writes when it imports litellm."""


@asynccontextmanager
async def show_progress(what: str, progress: Callable[[str], None]) -> AsyncIterator[None]:
    """Say every few seconds that `what` still goes on."""
    began = monotonic()

    async def repeat() -> None:
        while True:
            await asyncio.sleep(PROGRESS_INTERVAL)
            progress(f"{what} ({monotonic() - began:.0f} s) ...")

    task = asyncio.create_task(repeat())
    try:
        yield
    finally:
        task.cancel()


@dataclass
class WorkerLog:
    """The log of a worker at `path`, as a person wants it.

    `report` gets each warning of its first start, `progress` what takes time.
    """

    path: Path
    report: Callable[[str], None]
    progress: Callable[[str], None]
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    sandbox: str | None = None
    """The sandbox that the worker chose."""
    _position: int = 0

    async def follow(self) -> NoReturn:
        """Read the log as it grows."""
        while True:
            for line in LINE.finditer(self._read()):
                self._handle(line["level"].decode(), line["message"].decode(errors="replace"))
            await asyncio.sleep(POLL_INTERVAL)

    def _read(self) -> bytes:
        """Read the lines that are new and complete."""
        with self.path.open("rb") as file:
            file.seek(self._position)
            lines, newline, _ = file.read().rpartition(b"\n")
        self._position += len(lines + newline)
        return lines + newline

    def _handle(self, level: str, message: str) -> None:
        if READY.match(message):
            self.ready.set()
        elif sandbox := SANDBOX.match(message):
            self.sandbox = sandbox[1]
        elif message.startswith(LOADING):
            self.progress(f"The worker is {message}")
        elif level != "INFO" and not self.ready.is_set():
            self.report(f"The worker says: {message}")
