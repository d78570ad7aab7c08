"""A supervisor that restarts a program whenever it ends."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from perdure.embedded.process import ChildProcess, describe_exit

WORKER_STOP_TIMEOUT = 10.0
STABLE_AFTER = 10.0
INITIAL_BACKOFF = 0.1
MAX_BACKOFF = 5.0


@dataclass
class Supervisor:
    """The supervisor of a program: it restarts at once, with a backoff after early exits.

    `on_restart` is called after each restart with a line that says what happened.
    """

    name: str
    command: Sequence[str]
    log: Path
    env: Mapping[str, str]
    on_restart: Callable[[str], None]

    async def start(self) -> None:
        """Start the program and watch it. Raises ProcessFailed if it cannot be run."""
        self._child = await self._launch()
        self._watch_task = asyncio.create_task(self._keep_running())

    @property
    def pid(self) -> int:
        return self._child.pid

    async def stop(self) -> None:
        """Stop watching and end the program. Raises what ended the watching, if anything did."""
        self._watch_task.cancel()
        await asyncio.wait([self._watch_task])
        await self._child.stop(WORKER_STOP_TIMEOUT)
        if not self._watch_task.cancelled():
            self._watch_task.result()

    async def watch(self) -> None:
        """Wait, and raise ProcessFailed when the program cannot be restarted."""
        await asyncio.shield(self._watch_task)

    async def _keep_running(self) -> None:
        backoff = 0.0
        while True:
            started = monotonic()
            code = await self._child.wait()
            if monotonic() - started >= STABLE_AFTER:
                backoff = 0.0
            await asyncio.sleep(backoff)
            backoff = min(MAX_BACKOFF, max(INITIAL_BACKOFF, 2 * backoff))
            dead = self.pid
            self._child = await self._launch()
            self.on_restart(f"{self.name} {dead} died ({describe_exit(code)}); started {self.pid}")

    async def _launch(self) -> ChildProcess:
        return await ChildProcess.start(self.name, list(self.command), self.log, self.env)
