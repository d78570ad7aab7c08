"""A shell that lives from call to call, and what it is just doing."""

import asyncio
import contextlib
import os
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sandbox.sandbox import NONE, Sandbox
from tools.output import Output
from tools.secrets.masker import Masker
from tools.shell.console import Console
from tools.shell.marks import Begun, Done, Marks
from tools.shell.shell import Ended, Shell

SCRIPT = Path(__file__).with_name("session.bash").read_text()

INTERRUPT = 0.5
"""Seconds that an interrupted command has to end by itself."""

KILLED = 0.25
"""Seconds that a shell has to go on, once what came of its command is killed."""

NO_VARIABLES: Mapping[str, str] = MappingProxyType({})

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Finished:
    """How a command ended; `shell` is there where the shell ended with it."""

    exit_code: int
    shell: Ended | None = None


@dataclass
class Call:
    """A command that the shell was given; when, by the event loop's clock and the boot clock's."""

    number: int
    started: float
    tick: int
    begun: asyncio.Future[None] = field(default_factory=asyncio.Future)
    finished: asyncio.Future[Finished] = field(default_factory=asyncio.Future)

    async def finished_within(self, seconds: float) -> Finished | None:
        """How it ended, where it does in that time. Raises ToolFailed and OSError."""
        done, _ = await asyncio.wait({self.finished}, timeout=seconds)
        return self.finished.result() if done else None


class Session:
    """One bash, whose working directory, variables, functions and jobs last until it ends.

    `output` grows by what is written to the terminal, by whomever, with names for the values of
    secrets; `heard` is when it did last, by the event loop's clock. `call` is the newest command,
    until `settle` is told that its end was seen.
    """

    def __init__(
        self,
        directory: Path,
        environment: Mapping[str, str],
        masker: Masker,
        sandbox: Sandbox = NONE,
        network: bool = True,
    ) -> None:
        self._secret = uuid.uuid4().hex
        self._masker = masker
        self._marks = Marks(self._secret)
        self._numbers = 0
        self._stopping: asyncio.Task[None] | None = None
        self.call: Call | None = None
        self.heard = 0.0
        self.pid = -1
        self._failed = False
        self.directory = str(directory)
        self.network = network
        own = {**environment, "PROMPT_COMMAND": SCRIPT}
        self.shell = Shell(directory, own, self._hear, sandbox, network)
        self.output = Output()
        self.shell.over.add_done_callback(self._ended)
        self.shell.send(self._secret)

    @property
    def over(self) -> bool:
        return self._failed or self.shell.over.done()

    @property
    def busy(self) -> bool:
        return self.call is not None and not self.call.finished.done()

    @property
    def console(self) -> Console:
        return self.shell.console

    def start(self, command: str, lent: Mapping[str, str] = NO_VARIABLES) -> Call:
        """Give the shell a command, and variables for it alone; it must not be busy."""
        self.console.clear()
        self._numbers += 1
        loop = asyncio.get_running_loop()
        self.heard = loop.time()
        self.call = Call(self._numbers, loop.time(), _tick())
        for name, value in lent.items():
            self.shell.send(f"{self._secret} lend {name}")
            self.shell.send(value)
        self.shell.send(f"{self._secret} {self.call.number}\n{command}")
        return self.call

    def type(self, keys: bytes) -> None:
        self.heard = asyncio.get_running_loop().time()
        self.console.type(keys)

    def press_interrupt(self) -> None:
        """C-c, for whoever is in the foreground, whatever waits to be read."""
        self.console.clear()
        self.type(b"\x03")

    def say(self, text: str) -> None:
        """Put words of ours after the output so far."""
        self.output.take(self._masker.flush() + text.encode())

    def take(self) -> Output:
        """The output so far, which is the caller's now."""
        self.say("")
        return self._taken()

    def _taken(self) -> Output:
        taken, self.output = self.output, Output()
        return taken

    def settle(self) -> None:
        self.call = None

    async def ready(self) -> None:
        """Wait for an interrupt that is still at work."""
        if self._stopping is not None:
            await asyncio.shield(self._stopping)

    async def interrupt(self) -> None:
        """End the command that runs, with all that it started; the shell too where that fails.

        Goes on, and must be waited for with `ready`, where its caller is cancelled.
        """
        self._stopping = asyncio.create_task(self._interrupt())
        await asyncio.shield(self._stopping)

    async def _interrupt(self) -> None:
        call = self.call
        if call is None:
            return
        await _first({call.begun, call.finished}, INTERRUPT)
        # A shell that has not taken the command would be interrupted itself, for nothing.
        if call.begun.done():
            if not call.finished.done():
                self.press_interrupt()
            await _first({call.finished}, INTERRUPT)
            await self.shell.end_since(call.tick)
            await _first({call.finished}, KILLED)
        if not call.finished.done():
            await self.close()
        self.settle()

    async def close(self) -> None:
        """End the shell with all its processes, and wait until they are gone."""
        self.shell.close()
        await asyncio.wait({self.shell.over})
        with contextlib.suppress(OSError), self.output:  # the disk may be full
            pass

    def forget(self) -> None:
        """Drop the output so far."""
        self._masker.flush()
        with contextlib.suppress(OSError), self._taken():
            pass

    def _hear(self, chunk: bytes) -> None:
        try:
            for part in self._marks.split(chunk):
                if isinstance(part, bytes):
                    self.heard = asyncio.get_running_loop().time()
                    self.output.take(self._masker.feed(part))
                else:
                    self._note(part)
        except OSError as error:  # the disk is full
            self._fail(error)
            self.shell.close()

    def _note(self, mark: Begun | Done) -> None:
        self.directory = mark.directory
        if self.call is None or mark.call != self.call.number:
            return
        if isinstance(mark, Begun):
            self.pid = mark.pid
            if not self.call.begun.done():
                self.call.begun.set_result(None)
        elif not self.call.finished.done():
            self.call.finished.set_result(Finished(mark.exit_code))

    def _ended(self, over: "asyncio.Task[Ended]") -> None:
        error = None if over.cancelled() else over.exception()
        if error is not None:
            self._fail(error)
        elif self.busy:
            assert self.call is not None
            ended = Ended(-1) if over.cancelled() else over.result()
            code = ended.exit_code if self.call.begun.done() else -1
            self.call.finished.set_result(Finished(code, ended))

    def _fail(self, error: BaseException) -> None:
        self._failed = True
        if self.busy:
            assert self.call is not None
            self.call.finished.set_exception(error)


async def _first(futures: set[asyncio.Future[Any]], seconds: float) -> None:
    await asyncio.wait(futures, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)


def _tick() -> int:
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * _TICKS)
