"""The standard streams of a process that talks a protocol over them."""

import asyncio
import os
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import BinaryIO

FULL_SECONDS = 0.01


@contextmanager
def hold_stdout() -> Iterator[BinaryIO]:
    """Yield the stdout of the process; whatever else is printed meanwhile goes to stderr.

    That is so for libraries and for processes that are started too.
    """
    sys.stdout.flush()
    own = os.dup(1)
    os.dup2(2, 1)
    printed, sys.stdout = sys.stdout, sys.stderr
    try:
        with os.fdopen(own, "wb", buffering=0, closefd=False) as out:
            yield out
    finally:
        sys.stdout = printed
        os.dup2(own, 1)
        os.close(own)


async def write_all(out: BinaryIO, line: bytes) -> None:
    """Write a line, however long the reader takes; the loop goes on meanwhile."""

    def write() -> None:
        rest = memoryview(line)
        while rest:
            written = out.write(rest)
            if not written:  # a pipe that does not wait, and is full
                time.sleep(FULL_SECONDS)
            rest = rest[written or 0 :]

    await asyncio.to_thread(write)


async def read_lines(source: BinaryIO) -> AsyncIterator[bytes]:
    """Yield the lines of a pipe, a file or a terminal, until its end.

    A thread of its own reads them, which keeps no process from ending.
    """
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[bytes] = asyncio.Queue()

    def read() -> None:
        line = b"first"
        while line:
            line = source.readline()
            try:
                loop.call_soon_threadsafe(lines.put_nowait, line)
            except RuntimeError:  # the loop has ended
                return

    threading.Thread(target=read, daemon=True).start()
    while line := await lines.get():
        yield line
