"""Keeps one program running: started again whenever it ends, until it is told to stop."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import monotonic

from embedded.process import ChildProcess, how_it_ended

GRACE = 10.0
STEADY = 10.0
FIRST_DELAY = 0.1
LONGEST_DELAY = 5.0


class Supervisor:
    """A program that is started again at once; one that keeps dying young waits longer each time.

    `restarted` is called after each restart with a line that says what happened.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log: Path,
        env: Mapping[str, str],
        restarted: Callable[[str], None],
    ) -> None:
        self._name = name
        self._command = list(command)
        self._log = log
        self._env = env
        self._restarted = restarted

    async def start(self) -> None:
        """Starts the program and the watch over it; raises ProcessFailed where it cannot be run."""
        self._child = await self._launch()
        self._keeping = asyncio.create_task(self._keep())

    @property
    def pid(self) -> int:
        """The process of this moment."""
        return self._child.pid

    async def stop(self) -> None:
        """Ends the watch and the program; raises what ended the watch before, if anything did."""
        self._keeping.cancel()
        await asyncio.wait([self._keeping])
        await self._child.stop(GRACE)
        if not self._keeping.cancelled():
            self._keeping.result()

    async def watch(self) -> None:
        """Raises ProcessFailed once the program cannot be started any more."""
        await asyncio.shield(self._keeping)

    async def _keep(self) -> None:
        young_deaths = 0
        while True:
            born = monotonic()
            code = await self._child.wait()
            young_deaths = young_deaths + 1 if monotonic() - born < STEADY else 1
            await asyncio.sleep(_delay(young_deaths))
            dead = self._child.pid
            self._child = await self._launch()
            self._restarted(f"{self._name} {dead} died ({how_it_ended(code)}); started {self.pid}")

    async def _launch(self) -> ChildProcess:
        return await ChildProcess.start(self._name, self._command, self._log, self._env)


def _delay(young_deaths: int) -> float:
    if young_deaths < 2:
        return 0.0
    return float(min(LONGEST_DELAY, FIRST_DELAY * 2 ** (young_deaths - 2)))
