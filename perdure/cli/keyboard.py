"""Line input from a terminal or a pipe."""

import asyncio
import contextlib
import sys
import termios
import threading
from collections.abc import Iterator

import readline  # noqa: F401 isort: skip - gives input() its editing and its history


class Keyboard:
    """The lines of stdin; prompts are shown where it is `interactive`."""

    def __init__(self) -> None:
        self.interactive = sys.stdin.isatty() and sys.stdout.isatty()

    async def read_line(self, prompt: str) -> str | None:
        """Read the next line, without its newline; None at the end of the input.

        A thread reads it, since `input` cannot be cancelled; the thread stays behind if we are.
        """
        loop = asyncio.get_running_loop()
        line: asyncio.Future[str | None] = loop.create_future()

        def read() -> None:
            text = _read_input(prompt if self.interactive else "")
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(_set_result, line, text)

        threading.Thread(target=read, daemon=True).start()
        return await line

    def discard_typeahead(self) -> None:
        """Drop what was typed before a question was asked: it is not the answer."""
        if self.interactive:
            termios.tcflush(sys.stdin, termios.TCIFLUSH)


@contextlib.contextmanager
def preserve_terminal_modes() -> Iterator[None]:
    """Restore the terminal's modes at the end, also where a line was being edited."""
    if not sys.stdin.isatty():
        yield
        return
    modes = termios.tcgetattr(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSANOW, modes)


def _read_input(prompt: str) -> str | None:
    try:
        return input(prompt)
    except EOFError:
        return None


def _set_result(line: asyncio.Future[str | None], text: str | None) -> None:
    if not line.done():
        line.set_result(text)
