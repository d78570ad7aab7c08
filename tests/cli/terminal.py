"""A command on a terminal of a given size: what is typed there, and what stands on its screen."""

import asyncio
import contextlib
import fcntl
import os
import pty
import struct
import termios
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any

import pyte
from pyte.screens import Char

from tests.cli.command import PERDURE_COMMAND, Perdure

MAX_WAIT = 40.0
"""Seconds after which a text that does not appear fails the test."""

CHECKS_BETWEEN_LOOKS = 250
"""Checks of a condition between two screens that a failure shows: about five seconds."""

IMPORT_LINE = "perdure loads its libraries ("
"""How a line begins that says why a command is silent."""


class Screen(pyte.HistoryScreen):
    """A screen that answers the terminal queries of its program."""

    def __init__(self, columns: int, rows: int, reply: Callable[[bytes], Any]) -> None:
        super().__init__(columns, rows, history=5000, ratio=0.5)
        self._reply = reply

    def write_process_input(self, data: str) -> None:
        self._reply(data.encode())


class Terminal:
    """A pseudo-terminal with a command on it."""

    def __init__(self, process: asyncio.subprocess.Process, fd: int, size: tuple[int, int]) -> None:
        self.process, self._fd = process, fd
        self.written = b""
        self._screen = Screen(*size, reply=lambda data: os.write(fd, data))
        self._stream = pyte.ByteStream(self._screen)

    def read(self) -> None:
        with contextlib.suppress(OSError):  # how a terminal ends
            if data := os.read(self._fd, 65536):
                self.written += data
                self._stream.feed(data)
                return
        asyncio.get_running_loop().remove_reader(self._fd)

    @property
    def screen(self) -> list[str]:
        """The rows that are on the screen now."""
        return [row.rstrip() for row in self._screen.display]

    @property
    def lines(self) -> list[str]:
        """The rows that were scrolled away, and those on the screen."""
        history: Iterable[dict[int, Char]] = self._screen.history.top
        width = self._screen.columns
        gone = ["".join(row[at].data for at in range(width)).rstrip() for row in history]
        return gone + self.screen

    @property
    def text(self) -> str:
        """What stands on the screen, without the lines on imports of a machine that is busy."""
        return "\n".join(line for line in self.lines if not line.startswith(IMPORT_LINE))

    def type(self, text: str) -> None:
        """Type keys; Enter is a carriage return."""
        os.write(self._fd, text.encode())

    def paste(self, text: str) -> None:
        """Paste as a terminal does that marks a paste."""
        self.type(f"\x1b[200~{text.replace(chr(10), chr(13))}\x1b[201~")

    def resize(self, columns: int, rows: int) -> None:
        self._screen.resize(rows, columns)
        _set_size(self._fd, columns, rows)

    @contextlib.contextmanager
    def stalled(self) -> Iterator[None]:
        """Show nothing while inside: the command waits in the middle of what it prints."""
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._fd)
        try:
            yield
        finally:
            loop.add_reader(self._fd, self.read)

    def modes(self) -> Any:
        """Return the modes of the terminal, without its control characters."""
        return termios.tcgetattr(self._fd)[:4]

    async def wait_for(self, *texts: str) -> str:
        """Wait until all texts have appeared, and return everything that has."""
        return await self.wait_until(lambda: all(text in self.text for text in texts), str(texts))

    async def wait_until(self, condition: Callable[[], bool], purpose: str) -> str:
        looks, checks = [self.text], 0
        try:
            async with asyncio.timeout(MAX_WAIT):
                while not condition():
                    await asyncio.sleep(0.02)
                    checks += 1
                    if checks % CHECKS_BETWEEN_LOOKS == 0:
                        looks.append(self.text.rstrip())
        except TimeoutError:
            screens = "\n=====\n".join([*looks, self.text])
            raise AssertionError(f"never came: {purpose}, but:\n{screens}") from None
        return self.text

    async def wait_for_end(self) -> int:
        """Wait for the end of the command, and return its exit code."""
        async with asyncio.timeout(MAX_WAIT):
            return await self.process.wait()


@contextlib.asynccontextmanager
async def open_terminal(
    perdure: Perdure,
    *args: str,
    columns: int = 80,
    rows: int = 30,
    pipe_stdout: bool = False,
    **env: str,
) -> AsyncIterator[Terminal]:
    """Start the command on a terminal of its own; it is killed at the end, if it still runs."""
    fd, command_side = pty.openpty()
    _set_size(fd, columns, rows)
    process = await asyncio.create_subprocess_exec(
        *PERDURE_COMMAND,
        *args,
        env={**perdure.env, "TERM": "xterm-256color", "LANG": "C.UTF-8", **env},
        stdin=command_side,
        stdout=asyncio.subprocess.PIPE if pipe_stdout else command_side,
        stderr=command_side,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    terminal = Terminal(process, fd, (columns, rows))
    loop = asyncio.get_running_loop()
    loop.add_reader(fd, terminal.read)
    try:
        yield terminal
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        loop.remove_reader(fd)
        os.close(command_side)
        os.close(fd)


def _set_size(fd: int, columns: int, rows: int) -> None:
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
