"""A pseudo-terminal for a shell, with its input and output."""

import asyncio
import os
import termios
from collections.abc import Callable
from contextlib import suppress

ROWS, COLUMNS = 50, 200

DRAIN_TIMEOUT = 5.0
"""Seconds for the last output to arrive, if a process still holds the terminal."""

_CHUNK_BYTES = 64 * 1024
_CHUNKS_PER_TURN = 16
"""A megabyte is read before other callbacks of the event loop run."""
_THROTTLE_DELAY = 0.1
"""Seconds between throttled turns: at most ten megabytes a second."""


class NonBlockingWriter:
    """A writer that buffers what cannot be written at once, and writes it later."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._unsent = bytearray()
        self._stopped = False
        self._loop = asyncio.get_running_loop()
        os.set_blocking(descriptor, False)

    def write(self, data: bytes) -> None:
        if not self._stopped:
            self._unsent += data
            self._flush()

    def _flush(self) -> None:
        try:
            while self._unsent:
                del self._unsent[: os.write(self._descriptor, self._unsent[:_CHUNK_BYTES])]
        except BlockingIOError:
            self._loop.add_writer(self._descriptor, self._flush)
        except OSError:  # the other end is closed
            self.drop()
        else:
            self._loop.remove_writer(self._descriptor)

    def drop(self) -> None:
        """Discard the buffered data."""
        if not self._stopped:
            self._unsent.clear()
            self._loop.remove_writer(self._descriptor)

    def stop(self) -> None:
        """Write no more: the descriptor is about to be closed, and its number may be reused."""
        self.drop()
        self._stopped = True


class Console:
    """A pseudo-terminal, whose device for programs is `name`, open as `descriptor`.

    Echo and output translation are off, so that `on_output` gets the bytes that programs write.
    Unless `unthrottled`, output is read slowly, and a program that never stops writing blocks, as
    on a slow screen.
    """

    def __init__(self, on_output: Callable[[bytes], None]) -> None:
        self._on_output = on_output
        self._loop = asyncio.get_running_loop()
        self._controller, self.descriptor = os.openpty()
        self.name = os.ttyname(self.descriptor)
        input_, output, control, local, *rest = termios.tcgetattr(self.descriptor)
        output, local = output & ~termios.OPOST, local & ~termios.ECHO
        self._modes = [input_, output, control, local, *rest]
        termios.tcsetwinsize(self.descriptor, (ROWS, COLUMNS))
        self._keyboard = NonBlockingWriter(self._controller)
        self._end_of_output = asyncio.Event()
        self._closed = False
        self.unthrottled = False
        self.reset()
        self._listen()

    def type(self, data: bytes) -> None:
        """Type bytes as if from the keyboard, control characters such as C-c included."""
        self._keyboard.write(data)

    def reset(self) -> None:
        """Discard unread input, and restore the terminal's modes."""
        if self._closed:
            return
        self._keyboard.drop()
        termios.tcflush(self._controller, termios.TCOFLUSH)
        termios.tcflush(self.descriptor, termios.TCIFLUSH)
        termios.tcsetattr(self.descriptor, termios.TCSANOW, self._modes)

    async def close(self) -> None:
        """Read the remaining output once the programs are gone, and close both sides."""
        self._closed = True
        # While we hold the programs' side ourselves, no end of file arrives.
        os.close(self.descriptor)
        self.unthrottled = True
        self._listen()
        try:
            with suppress(TimeoutError):  # a surviving process holds the terminal
                async with asyncio.timeout(DRAIN_TIMEOUT):
                    await self._end_of_output.wait()
        finally:
            self._end()
            os.close(self._controller)

    def abandon(self) -> None:
        """Close both sides at once; no program has used the terminal."""
        self._end()
        os.close(self.descriptor)
        os.close(self._controller)

    def _listen(self) -> None:
        if not self._end_of_output.is_set():
            self._loop.add_reader(self._controller, self._read)

    def _read(self) -> None:
        chunks: list[bytes] = []
        try:
            while len(chunks) < _CHUNKS_PER_TURN:
                chunks.append(os.read(self._controller, _CHUNK_BYTES))
        except BlockingIOError:
            pass  # no more data yet
        except OSError:  # the other side is closed
            self._end()
        if len(chunks) == _CHUNKS_PER_TURN and not self.unthrottled:
            self._loop.remove_reader(self._controller)
            self._loop.call_later(_THROTTLE_DELAY, self._listen)
        self._on_output(b"".join(chunks))

    def _end(self) -> None:
        self._loop.remove_reader(self._controller)
        self._keyboard.stop()
        self._end_of_output.set()
