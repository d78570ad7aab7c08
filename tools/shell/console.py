"""A terminal for a shell: what its programs write is heard here, and they read what is typed."""

import asyncio
import os
import termios
from collections.abc import Callable
from contextlib import suppress
from typing import Any

ROWS, COLUMNS = 50, 200

PATIENCE = 5.0
"""Seconds for the last words to arrive, where somebody still holds the terminal."""

_CHUNK = 64 * 1024
"""Bytes of one read or write."""

_READS = 16
"""Chunks that are heard before others have their turn: a megabyte."""

_PAUSE = 0.1
"""Seconds before the next reads where nobody waits: at most ten megabytes a second."""


class Sender:
    """Writes without waiting: what does not go out now goes out as soon as it can."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._unsent = bytearray()
        self._stopped = False
        self._loop = asyncio.get_running_loop()
        os.set_blocking(descriptor, False)

    def send(self, data: bytes) -> None:
        if not self._stopped:
            self._unsent += data
            self._write()

    def _write(self) -> None:
        try:
            while self._unsent:
                del self._unsent[: os.write(self._descriptor, self._unsent[:_CHUNK])]
        except BlockingIOError:
            self._loop.add_writer(self._descriptor, self._write)
        except OSError:  # nobody is there to read it any more
            self.drop()
        else:
            self._loop.remove_writer(self._descriptor)

    def drop(self) -> None:
        """Forget what did not go out."""
        if not self._stopped:
            self._unsent.clear()
            self._loop.remove_writer(self._descriptor)

    def stop(self) -> None:
        """Send no more: the descriptor is about to be closed, and may be another's then."""
        self.drop()
        self._stopped = True


class Console:
    """A pseudo-terminal: programs have the one side, under `name`, and we have the other.

    It echoes nothing and translates nothing, so that `hear` gets what programs write, byte for
    byte. While nobody is `awaited`, it is read slowly, and a program that never stops writing
    waits for us, as it does for a slow screen.
    """

    def __init__(self, hear: Callable[[bytes], None]) -> None:
        self._hear = hear
        self._loop = asyncio.get_running_loop()
        self._ours, self._theirs = os.openpty()
        self.name = os.ttyname(self._theirs)
        self._modes = _plain(termios.tcgetattr(self._theirs))
        termios.tcsetwinsize(self._theirs, (ROWS, COLUMNS))
        self._keyboard = Sender(self._ours)
        self._over = asyncio.Event()
        self._closed = False
        self.awaited = False
        self.clear()
        self._listen()

    @property
    def descriptor(self) -> int:
        """The programs' side."""
        return self._theirs

    def type(self, data: bytes) -> None:
        """As if from the keyboard: C-c is a byte like any other, and acts as it does there."""
        self._keyboard.send(data)

    def clear(self) -> None:
        """Drop what was typed and not read, and undo what a program did to the modes."""
        if self._closed:
            return
        self._keyboard.drop()
        termios.tcflush(self._ours, termios.TCOFLUSH)
        termios.tcflush(self._theirs, termios.TCIFLUSH)
        termios.tcsetattr(self._theirs, termios.TCSANOW, self._modes)

    async def close(self) -> None:
        """Hear what is left, once its programs are gone."""
        self._closed = True
        # As long as we hold their side too, nobody can tell us that it is the end.
        os.close(self._theirs)
        self.awaited = True
        self._listen()
        try:
            with suppress(TimeoutError):  # a survivor has it
                async with asyncio.timeout(PATIENCE):
                    await self._over.wait()
        finally:
            self._end()
            os.close(self._ours)

    def abandon(self) -> None:
        """Close it at once, where no program ever had it."""
        self._end()
        os.close(self._theirs)
        os.close(self._ours)

    def _listen(self) -> None:
        if not self._over.is_set():
            self._loop.add_reader(self._ours, self._read)

    def _read(self) -> None:
        chunks: list[bytes] = []
        try:
            while len(chunks) < _READS:
                chunks.append(os.read(self._ours, _CHUNK))
        except BlockingIOError:
            pass  # that is all for now
        except OSError:  # the other side is closed
            self._end()
        if len(chunks) == _READS and not self.awaited:
            self._loop.remove_reader(self._ours)
            self._loop.call_later(_PAUSE, self._listen)
        self._hear(b"".join(chunks))

    def _end(self) -> None:
        self._loop.remove_reader(self._ours)
        self._keyboard.stop()
        self._over.set()


def _plain(modes: list[Any]) -> list[Any]:
    input_, output, control, local, *rest = modes
    return [input_, output & ~termios.OPOST, control, local & ~termios.ECHO, *rest]
