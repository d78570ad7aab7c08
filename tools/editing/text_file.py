"""Text files, edited without touching what was not meant: line ends, encodings, modes."""

import codecs
import re
from dataclasses import dataclass, replace

from sandbox.spot import Spot
from tools.tool import ToolFailed
from tools.workspace import printable

LARGEST = 10 * 1024 * 1024
"""Bytes of a file that is read as a whole."""

_MARKED = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_LEGACY = ("cp1252", "latin-1")
"""Tried where a file is not UTF-8: bytes of any encoding survive where nothing touches them."""

# What no text in a one-byte encoding has: control characters but for tab, line ends and escape.
_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]")


@dataclass(frozen=True)
class Text:
    """What a file says, with `\\n` at the end of its lines where all of them ended in `\\r\\n`.

    A file that mixes both is taken as it is, so that what is not edited stays as it was.
    """

    body: str
    newline: str = "\n"
    encoding: str = "utf-8"
    mark: bytes = b""
    """The byte order mark that the file begins with, which is no part of `body`."""

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

    def encoded(self, name: str) -> bytes:
        """The bytes of the file. Raises ToolFailed where its encoding has no such character."""
        try:
            return self.mark + self.raw.encode(self.encoding)
        except UnicodeEncodeError as error:
            raise ToolFailed(
                f"`{printable(name)}` is in {self.encoding}, which has no "
                f"{error.object[error.start]!r}: use characters that it has, or convert the file "
                "to UTF-8 first."
            ) from error

    def meant(self, given: str) -> str:
        """What the model wrote, with this file's line ends as `body` has them."""
        return given.replace("\r\n", "\n") if self.newline == "\r\n" else given

    def with_body(self, body: str) -> "Text":
        return replace(self, body=body)


def lines_of(body: str) -> list[str]:
    lines = body.split("\n")
    return lines if lines[-1] else lines[:-1]


def load(spot: Spot, name: str) -> bytes:
    """The bytes of the file that the model calls `name`. Raises ToolFailed, OSError."""
    if not spot.is_file():
        raise ToolFailed(f"`{printable(name)}` is not a regular file.")
    size, data = spot.read(LARGEST)
    if size > LARGEST:
        raise ToolFailed(
            f"`{printable(name)}` has {size:,} bytes, and at most {LARGEST:,} can be opened: use "
            "commands that read a part of it."
        )
    return data


def read(spot: Spot, name: str) -> Text:
    """The text of the file that the model calls `name`. Raises ToolFailed, OSError."""
    return decoded(load(spot, name), name)


def decoded(data: bytes, name: str) -> Text:
    """The text that these bytes are. Raises ToolFailed where they are none.

    UTF-8, UTF-16 with its mark, and else Windows-1252 or Latin-1, which keep every byte.
    """
    mark, encoding = next((pair for pair in _MARKED if data.startswith(pair[0])), (b"", "utf-8"))
    try:
        raw = data[len(mark) :].decode(encoding)
    except UnicodeDecodeError as error:
        mark, (raw, encoding) = b"", _legacy(data, name, error)
    if "\0" in raw:
        raise ToolFailed(f"`{printable(name)}` is a binary file: it holds NUL bytes.")
    return replace(Text.of(raw), encoding=encoding, mark=mark)


def _legacy(data: bytes, name: str, error: UnicodeDecodeError) -> tuple[str, str]:
    if _BINARY.search(data):
        raise ToolFailed(
            f"`{printable(name)}` is a binary file: byte {error.start:,} is not UTF-8, and it "
            "holds control characters."
        ) from error
    for encoding in _LEGACY:
        try:
            return data.decode(encoding), encoding
        except UnicodeDecodeError:
            continue
    raise AssertionError("Latin-1 has a character for every byte")
