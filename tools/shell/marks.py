"""What a shell says to us, told from what its commands print."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

LONGEST = 8 * 1024
"""Bytes of a mark; a path has at most 4,096."""


@dataclass(frozen=True)
class Begun:
    """The shell took the command of `call`; `pid` is the shell's."""

    call: int
    pid: int
    directory: str


@dataclass(frozen=True)
class Done:
    """The command of `call` is over."""

    call: int
    exit_code: int
    directory: str


class Marks:
    """Splits what is read of a terminal, wherever the reads cut it.

    A mark begins with a secret that no command prints by chance.
    """

    def __init__(self, secret: str) -> None:
        self._start = b"\x1e" + secret.encode() + b" "
        self._mark = re.compile(
            re.escape(self._start) + rb"(\d{1,18}) (begun|ended) (\d{1,18})\x00([^\x00]*)\x00"
        )
        self._held = b""

    def split(self, chunk: bytes) -> Iterator[bytes | Begun | Done]:
        """Output and marks in their order; what may be the start of a mark waits for the rest."""
        read, at = self._held + chunk, 0
        for found in self._mark.finditer(read):
            if found.start() > at:
                yield read[at : found.start()]
            yield _told(found)
            at = found.end()
        rest = self._unfinished(read, at)
        self._held = read[rest:]
        if rest > at:
            yield read[at:rest]

    def _unfinished(self, read: bytes, at: int) -> int:
        """Where a mark begins that has not come whole; the end of what was read where none does."""
        start = read.find(self._start, max(at, len(read) - LONGEST + 1))
        if start >= 0:
            return start
        start = read.rfind(b"\x1e", max(at, len(read) - len(self._start)))
        return start if start >= 0 and self._start.startswith(read[start:]) else len(read)


def _told(found: re.Match[bytes]) -> Begun | Done:
    call, number, directory = int(found[1]), int(found[3]), found[4].decode(errors="replace")
    return Begun(call, number, directory) if found[2] == b"begun" else Done(call, number, directory)
