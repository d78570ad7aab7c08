"""A supervisor that starts a program again whenever it ends."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from time import monotonic

from perdure.embedded.errors import ProcessFailed
from perdure.embedded.process import ChildProcess, describe_exit

STABLE_AFTER = 10.0
INITIAL_BACKOFF = 0.1
MAX_BACKOFF = 5.0

MAX_FAILURES = 8
"""Ends in a row, each soon after a start, after which a program is given up."""

MAX_LINE = 300
"""Characters of a log's line that are reported."""

KILLS = (-signal.SIGKILL, -signal.SIGTERM)
"""Exit codes of a program that was ended from outside, which is no fault of its own."""


@dataclass
class Supervisor:
    """The supervisor of a program: it is started again at once, with a backoff after early ends.

    `launch` starts the program, and `wait_for_room` returns whether it waited until the disk had
    room. `on_end` is called once for each end, with a line that says what happened.
    """

    name: str
    child: ChildProcess
    launch: Callable[[], Awaitable[ChildProcess]]
    wait_for_room: Callable[[], Awaitable[bool]]
    on_end: Callable[[str], None]
    final_codes: Collection[int] = ()
    """Exit codes after which no other start can help."""
    running: asyncio.Event = field(default_factory=asyncio.Event)
    _is_asked: bool = False
    _failures: int = 0
    _ends: int = 0
    _task: asyncio.Task[None] = field(init=False)

    def __post_init__(self) -> None:
        self.running.set()
        self._task = asyncio.create_task(self._keep_running())

    @property
    def pid(self) -> int:
        return self.child.pid

    async def stop(self) -> None:
        """Stop watching; the program goes on."""
        self._task.cancel()
        await asyncio.wait([self._task])

    def restart(self) -> None:
        """Kill the program and start it again; nothing is reported."""
        self._is_asked = True
        self.running.clear()
        self.child.kill()

    async def watch(self) -> None:
        """Wait, and raise ProcessFailed when the program fails at every start."""
        await asyncio.shield(self._task)

    async def _keep_running(self) -> None:
        while True:
            started = monotonic()
            code = await self.child.wait()
            self.running.clear()
            if self._is_asked or monotonic() - started >= STABLE_AFTER:
                self._failures = self._ends = 0
            self._failures += code not in KILLS
            self._ends += 1
            event = f"{self.name} (pid {self.pid}) {self._describe_end(code)}"
            if code in self.final_codes:
                raise ProcessFailed(f"{event}. Its log: {self.child.log}")
            await self._start_again(event)
            self.running.set()

    async def _start_again(self, event: str) -> None:
        """Start the program until it runs; report each end and each failed start once."""
        ended = monotonic()
        while True:
            if await self.wait_for_room():
                self._failures = self._ends = 0
            if self._failures >= MAX_FAILURES:
                often = f"It was started {self._failures} times in vain: everything ends"
                raise ProcessFailed(f"{event}. {often}. Its log: {self.child.log}")
            pause = self._pause()
            if pause >= 1:
                often = f"{event}, for {self._ends} times in a row"
                self.on_end(
                    f"{often}; it is started again in {pause:g} s. Its log: {self.child.log}"
                )
            await asyncio.sleep(pause)
            try:
                self.child = await self.launch()
            except (ProcessFailed, OSError) as error:
                event = str(error).partition("\n")[0].partition("; the end of")[0]
                self._failures, self._ends = self._failures + 1, self._ends + 1
                continue
            seconds = monotonic() - ended
            if pause < 1 and not self._is_asked:
                self.on_end(
                    f"{event}; it was started again after {seconds:.1f} s, as pid {self.pid}."
                )
            self._is_asked = False
            return

    def _pause(self) -> float:
        """Return the seconds before the next start: none after a first end."""
        return min(MAX_BACKOFF, INITIAL_BACKOFF * 2 ** (self._ends - 2)) if self._ends > 1 else 0.0

    def _describe_end(self, code: int) -> str:
        """Describe an end; one of the program's own doing with the last line of its log."""
        if code in KILLS:
            return f"died by signal {-code}"
        end = f"died by signal {-code}" if code < 0 else f"ended with {describe_exit(code)}"
        lines = self.child.read_last_lines(1)
        return f"{end} ({lines[0][:MAX_LINE].rstrip('.')})" if lines else end
