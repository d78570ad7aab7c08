"""A shell that persists between tool calls, and its current command."""

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

from perdure.sandbox.sandbox import UNCONFINED, Sandbox
from perdure.secrets.masker import Masker
from perdure.tools.output import Output
from perdure.tools.shell.prompt_markers import CommandStarted, ImagePart, Marker, MarkerParser
from perdure.tools.shell.shell import BASH, Program, Shell, ShellExit

INTERRUPT_TIMEOUT = 0.5
"""Seconds for an interrupted command to end by itself."""
KILL_TIMEOUT = 0.25
"""Seconds for a shell to continue, once its command's processes are killed."""

MAX_IMAGE_PARTS = 8_000
"""Parts of images, of at most 8 KiB, that are kept of one command."""

NO_VARIABLES: Mapping[str, str] = MappingProxyType({})

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class CommandResult:
    """The outcome of a command; `shell_exit` is set if the shell ended with it."""

    exit_code: int
    shell_exit: ShellExit | None = None


@dataclass
class ShellCommand:
    """A command given to the shell.

    `start_time` is by the event loop's clock, `start_tick` by the boot clock.
    """

    number: int
    start_time: float
    start_tick: int
    started: asyncio.Future[None] = field(default_factory=asyncio.Future)
    result: asyncio.Future[CommandResult] = field(default_factory=asyncio.Future)

    async def wait(self, seconds: float) -> CommandResult | None:
        """Return the result, or None after that time. Raises ToolFailed, OSError."""
        done, _ = await asyncio.wait({self.result}, timeout=seconds)
        return self.result.result() if done else None


class ShellSession:
    """A process of bash, or a kernel, whose working directory, variables and jobs persist.

    `output` collects everything written to the terminal, with secrets masked; `last_output_time` is
    by the event loop's clock. `command` is the newest command, until its result has been used, and
    `image_parts` is what it has shown.
    """

    def __init__(
        self,
        directory: Path,
        environment: Mapping[str, str],
        masker: Masker,
        sandbox: Sandbox = UNCONFINED,
        network: bool = True,
        program: Program = BASH,
    ) -> None:
        self._secret = uuid.uuid4().hex
        self._masker, self._parser = masker, MarkerParser(self._secret)
        self._last_number = 0
        self._interruption: asyncio.Task[None] | None = None
        self.command: ShellCommand | None = None
        self.last_output_time = 0.0
        self.pid = -1
        self._failed = False
        self.image_parts: list[ImagePart] = []
        self.directory = str(directory)
        self.network = network
        self.shell = Shell(directory, environment, self._receive, sandbox, network, program)
        self.console, self.output = self.shell.console, Output()
        self.shell.exit_task.add_done_callback(self._on_shell_exit)
        self.shell.send(self._secret)

    @property
    def closed(self) -> bool:
        return self._failed or self.shell.exit_task.done()

    @property
    def busy(self) -> bool:
        return self.command is not None and not self.command.result.done()

    def start(self, command: str, variables: Mapping[str, str] = NO_VARIABLES) -> ShellCommand:
        """Start a command with `variables` for it alone; the shell must not be busy."""
        self.console.reset()
        self._last_number += 1
        self.image_parts = []
        loop = asyncio.get_running_loop()
        self.last_output_time = loop.time()
        tick = int(time.clock_gettime(time.CLOCK_BOOTTIME) * _TICKS_PER_SECOND)
        self.command = ShellCommand(self._last_number, loop.time(), tick)
        for name, value in variables.items():
            self.shell.send(f"{self._secret} lend {name}")
            self.shell.send(value)
        self.shell.send(f"{self._secret} {self.command.number}\n{command}")
        return self.command

    def type(self, keys: bytes) -> None:
        self.last_output_time = asyncio.get_running_loop().time()
        self.console.type(keys)

    def press_interrupt(self) -> None:
        """Type C-c for the foreground process, discarding unread input."""
        self.console.reset()
        self.type(b"\x03")

    def append_note(self, text: str) -> None:
        self.output.write(self._masker.flush() + text.encode())

    def take_output(self) -> Output:
        """Return the output so far, which the caller has to close, and start a new one."""
        self.append_note("")
        output, self.output = self.output, Output()
        return output

    async def wait_for_interrupt(self) -> None:
        """Wait for an interrupt that is still in progress."""
        if self._interruption is not None:
            await asyncio.shield(self._interruption)

    async def interrupt(self) -> None:
        """Kill the current command with all that it started, and the shell too if that fails.

        If the caller is cancelled, this continues; `wait_for_interrupt` waits for it.
        """
        self._interruption = asyncio.create_task(self._interrupt())
        await asyncio.shield(self._interruption)

    async def _interrupt(self) -> None:
        command = self.command
        if command is None:
            return
        await _wait_for_first({command.started, command.result}, INTERRUPT_TIMEOUT)
        # Before the command has started, C-c would interrupt the shell itself.
        if command.started.done():
            if not command.result.done():
                self.press_interrupt()
            await _wait_for_first({command.result}, INTERRUPT_TIMEOUT)
            await self.shell.kill_since(command.start_tick)
            await _wait_for_first({command.result}, KILL_TIMEOUT)
        if not command.result.done():
            await self.close()
        self.command = None

    async def close(self) -> None:
        """Kill the shell with all its processes, and wait until they are gone."""
        self.shell.close()
        await asyncio.wait({self.shell.exit_task})
        with contextlib.suppress(OSError), self.output:  # the disk may be full
            pass

    def drop_output(self) -> None:
        self._masker.flush()
        output, self.output = self.output, Output()
        with contextlib.suppress(OSError), output:
            pass

    def _receive(self, chunk: bytes) -> None:
        try:
            for part in self._parser.split(chunk):
                if isinstance(part, bytes):
                    self.last_output_time = asyncio.get_running_loop().time()
                    self.output.write(self._masker.feed(part))
                else:
                    self._handle_marker(part)
        except OSError as error:  # the disk is full
            self._fail(error)
            self.shell.close()

    def _handle_marker(self, marker: Marker) -> None:
        is_current = self.command is not None and marker.command == self.command.number
        if isinstance(marker, ImagePart):
            if is_current and len(self.image_parts) < MAX_IMAGE_PARTS:
                self.image_parts.append(marker)
            return
        self.directory = marker.directory
        if self.command is None or not is_current:
            return
        if isinstance(marker, CommandStarted):
            self.pid = marker.pid
            if not self.command.started.done():
                self.command.started.set_result(None)
        elif not self.command.result.done():
            self.command.result.set_result(CommandResult(marker.exit_code))

    def _on_shell_exit(self, exit_task: "asyncio.Task[ShellExit]") -> None:
        error = None if exit_task.cancelled() else exit_task.exception()
        if error is not None:
            self._fail(error)
        elif self.command is not None and self.busy:
            shell_exit = ShellExit(-1) if exit_task.cancelled() else exit_task.result()
            code = shell_exit.exit_code if self.command.started.done() else -1
            self.command.result.set_result(CommandResult(code, shell_exit))

    def _fail(self, error: BaseException) -> None:
        self._failed = True
        if self.command is not None and self.busy:
            self.command.result.set_exception(error)


async def _wait_for_first(futures: set[asyncio.Future[Any]], seconds: float) -> None:
    await asyncio.wait(futures, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
