"""Parsing the markers that `session.bash`, or a kernel, prints between the output of commands."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

MAX_MARKER_BYTES = 8 * 1024
"""A marker holds a path, which has at most 4,096 bytes."""


@dataclass(frozen=True)
class CommandStarted:
    """The shell, whose process id is `pid`, started the command of that number."""

    command: int
    pid: int
    directory: str


@dataclass(frozen=True)
class CommandEnded:
    """The command of that number ended."""

    command: int
    exit_code: int
    directory: str


@dataclass(frozen=True)
class ImagePart:
    """A part of an image in base64, which the command of that number shows; `rest` parts follow."""

    command: int
    rest: int
    data: str


Marker: TypeAlias = CommandStarted | CommandEnded | ImagePart

KINDS: dict[bytes, type[Marker]] = {
    b"begun": CommandStarted,
    b"ended": CommandEnded,
    b"image": ImagePart,
}


class MarkerParser:
    """An incremental parser that separates output from markers, which begin with a secret."""

    def __init__(self, secret: str) -> None:
        self._start = b"\x1e" + secret.encode() + b" "
        self._pattern = re.compile(
            re.escape(self._start) + rb"(\d{1,18}) (begun|ended|image) (\d{1,18})\x00([^\x00]*)\x00"
        )
        self._pending = b""

    def split(self, chunk: bytes) -> Iterator[bytes | Marker]:
        """Yield output and markers in order; hold back a possible start of a marker."""
        data, at = self._pending + chunk, 0
        for match in self._pattern.finditer(data):
            if match.start() > at:
                yield data[at : match.start()]
            kind = KINDS[match[2]]
            yield kind(int(match[1]), int(match[3]), match[4].decode(errors="replace"))
            at = match.end()
        incomplete = self._find_incomplete(data, at)
        self._pending = data[incomplete:]
        if incomplete > at:
            yield data[at:incomplete]

    def _find_incomplete(self, data: bytes, at: int) -> int:
        """Return the position of an incomplete marker, or the length of `data` without one."""
        start = data.find(self._start, max(at, len(data) - MAX_MARKER_BYTES + 1))
        if start >= 0:
            return start
        start = data.rfind(b"\x1e", max(at, len(data) - len(self._start)))
        return start if start >= 0 and self._start.startswith(data[start:]) else len(data)
