"""Text files, edited without touching what was not meant: line ends, modes, other bytes."""

import os
import uuid
from dataclasses import dataclass
from pathlib import Path

from tools.tool import ToolFailed
from tools.workspace import printable

LARGEST = 10 * 1024 * 1024
"""Bytes of a file that is read as a whole."""


@dataclass(frozen=True)
class Text:
    """What a file says, with `\\n` at the end of its lines where all of them ended in `\\r\\n`.

    A file that mixes both is taken as it is, so that what is not edited stays as it was.
    """

    body: str
    newline: str = "\n"

    @classmethod
    def of(cls, raw: str) -> "Text":
        ends = raw.count("\n")
        if ends and raw.count("\r\n") == ends:
            return cls(raw.replace("\r\n", "\n"), "\r\n")
        return cls(raw)

    @property
    def raw(self) -> str:
        return self.body.replace("\n", self.newline)

    @property
    def lines(self) -> list[str]:
        """Without their ends; only `\\n` ends a line, whatever else Unicode calls a line break."""
        return lines_of(self.body)

    def meant(self, given: str) -> str:
        """What the model wrote, with this file's line ends as `body` has them."""
        return given.replace("\r\n", "\n") if self.newline == "\r\n" else given

    def with_body(self, body: str) -> "Text":
        return Text(body, self.newline)


def lines_of(body: str) -> list[str]:
    lines = body.split("\n")
    return lines if lines[-1] else lines[:-1]


def read(path: Path, name: str) -> Text:
    """The file at `path`, which the model calls `name`. Raises ToolFailed, OSError."""
    if not path.is_file():
        raise ToolFailed(f"`{printable(name)}` is not a regular file.")
    if (size := path.stat().st_size) > LARGEST:
        raise ToolFailed(
            f"`{printable(name)}` has {size:,} bytes, and at most {LARGEST:,} can be opened: use "
            "commands that read a part of it."
        )
    try:
        raw = path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise ToolFailed(
            f"`{printable(name)}` is not UTF-8 text (byte {error.start:,}): it is binary or in "
            "another encoding."
        ) from error
    if "\0" in raw:
        raise ToolFailed(f"`{printable(name)}` is a binary file: it holds NUL bytes.")
    return Text.of(raw)


def write(path: Path, text: Text) -> None:
    """All of it or nothing, even if the power fails; a file that was there keeps its mode."""
    aside = path.with_name(f".{uuid.uuid4().hex}.tmp")
    mode = path.stat().st_mode & 0o7777 if path.exists() else None
    try:
        with aside.open("xb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.write(text.raw.encode())
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
