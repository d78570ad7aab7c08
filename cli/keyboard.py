"""What is typed at a terminal, or comes through a pipe, a line at a time."""

import asyncio
import contextlib
import sys
import termios
import threading
from collections.abc import Iterator

import readline  # noqa: F401 isort: skip - gives input() its editing and its history


class Keyboard:
    """`person` says that somebody sits there, who sees the prompts."""

    def __init__(self) -> None:
        self.person = sys.stdin.isatty() and sys.stdout.isatty()

    async def line(self, prompt: str) -> str | None:
        """The next line, without its end; None where there will be no more.

        It is read in a thread of its own, which stays behind where nobody waits for it any more.
        """
        loop = asyncio.get_running_loop()
        line: asyncio.Future[str | None] = loop.create_future()

        def read() -> None:
            text = _input(prompt if self.person else "")
            with contextlib.suppress(RuntimeError):  # the loop is closed by now
                loop.call_soon_threadsafe(_settle, line, text)

        threading.Thread(target=read, daemon=True).start()
        return await line

    def forget(self) -> None:
        """Drop what was typed ahead: it cannot be the answer to what is asked only now."""
        if self.person:
            termios.tcflush(sys.stdin, termios.TCIFLUSH)


@contextlib.contextmanager
def terminal_as_it_was() -> Iterator[None]:
    """Puts the terminal's modes back at the end, also where a line was being edited."""
    if not sys.stdin.isatty():
        yield
        return
    modes = termios.tcgetattr(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSANOW, modes)


def _input(prompt: str) -> str | None:
    try:
        return input(prompt)
    except EOFError:
        return None


def _settle(line: asyncio.Future[str | None], text: str | None) -> None:
    if not line.done():
        line.set_result(text)
