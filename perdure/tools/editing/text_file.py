"""Text files that keep their newlines and encoding, and the edits of their texts."""

import codecs
import re
from dataclasses import dataclass, replace
from itertools import islice

from perdure.sandbox.safe_path import SafePath
from perdure.tools.tool import ToolFailed
from perdure.tools.workspace import printable
from perdure.wording import count

MAX_FILE_BYTES = 10 * 1024 * 1024
"""The largest file that is read as a whole."""

_MAX_MATCHES = 20
"""Matches that an error lists."""

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Control characters, but for tab, newlines and escape, occur in no one-byte encoded text.
_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]")


@dataclass(frozen=True)
class Text:
    """The text of a file, with `\\n` as newline if every line of the file ends in `\\r\\n`.

    A file that mixes both stays as it is, so that unedited lines do not change.
    """

    body: str
    newline: str = "\n"
    encoding: str = "utf-8"
    bom: bytes = b""
    """The byte order mark at the file's beginning, which is no part of `body`."""

    @classmethod
    def from_raw(cls, raw: str) -> "Text":
        ends = raw.count("\n")
        if ends and raw.count("\r\n") == ends:
            return cls(raw.replace("\r\n", "\n"), "\r\n")
        return cls(raw)

    @property
    def raw(self) -> str:
        return self.body.replace("\n", self.newline)

    @property
    def lines(self) -> list[str]:
        """The lines without newlines; only `\\n` ends a line, no other Unicode line break does."""
        return split_lines(self.body)

    def encode(self, name: str) -> bytes:
        """Encode the text as in the file. Raises ToolFailed for a character the encoding lacks."""
        try:
            return self.bom + self.raw.encode(self.encoding)
        except UnicodeEncodeError as error:
            raise ToolFailed(
                f"`{printable(name)}` is in {self.encoding}, which has no "
                f"{error.object[error.start]!r}: use characters that it has, or convert the file "
                "to UTF-8 first."
            ) from error

    def with_own_newlines(self, text: str) -> str:
        """Convert the model's text to the newlines that `body` has."""
        return text.replace("\r\n", "\n") if self.newline == "\r\n" else text

    def with_body(self, body: str) -> "Text":
        return replace(self, body=body)


def split_lines(body: str) -> list[str]:
    lines = body.split("\n")
    return lines if lines[-1] else lines[:-1]


def load_file(path: SafePath, name: str) -> bytes:
    """Load the bytes of the file that the model calls `name`. Raises ToolFailed, OSError."""
    if not path.is_file():
        raise ToolFailed(f"`{printable(name)}` is not a regular file.")
    size, data = path.read(MAX_FILE_BYTES)
    if size > MAX_FILE_BYTES:
        raise ToolFailed(
            f"`{printable(name)}` has {size:,} bytes, and at most {MAX_FILE_BYTES:,} can be "
            "opened: use commands that read a part of it."
        )
    return data


def decode_text(data: bytes, name: str) -> Text:
    """Decode UTF-8, UTF-16 with its mark, or else Windows-1252 or Latin-1. Raises ToolFailed."""
    bom, encoding = next((pair for pair in _BOMS if data.startswith(pair[0])), (b"", "utf-8"))
    try:
        raw = data[len(bom) :].decode(encoding)
    except UnicodeDecodeError as error:
        bom, (raw, encoding) = b"", _decode_legacy(data, name, error)
    if "\0" in raw:
        raise ToolFailed(f"`{printable(name)}` is a binary file: it holds NUL bytes.")
    return replace(Text.from_raw(raw), encoding=encoding, bom=bom)


def _decode_legacy(data: bytes, name: str, error: UnicodeDecodeError) -> tuple[str, str]:
    if _BINARY.search(data):
        raise ToolFailed(
            f"`{printable(name)}` is a binary file: byte {error.start:,} is not UTF-8, and it "
            "holds control characters."
        ) from error
    try:
        return data.decode("cp1252"), "cp1252"
    except UnicodeDecodeError:
        return data.decode("latin-1"), "latin-1"  # which has a character for every byte


@dataclass(frozen=True)
class Rewrite:
    """A new text, and the first and last of its changed lines, counted from 1."""

    text: Text
    first: int
    last: int


def replace_text(text: Text, old: str, new: str, name: str) -> Rewrite:
    """Replace the only occurrence of `old` with `new`. Raises ToolFailed."""
    old, new = text.with_own_newlines(old), text.with_own_newlines(new)
    at = _find_unique_match(text, old, new, name)
    after = text.with_body(text.body[:at] + new + text.body[at + len(old) :])
    first = text.body.count("\n", 0, at) + 1
    return Rewrite(after, first, first + new.count("\n"))


def insert_lines(text: Text, after_line: int, inserted: str, name: str) -> Rewrite:
    """Insert whole lines after a line; 0 puts them first. Raises ToolFailed."""
    lines = text.lines
    if after_line > len(lines):
        raise ToolFailed(
            f"`insert_line` is {after_line}, but `{name}` has {count(len(lines), 'line')}: "
            f"use 0 to {len(lines)}."
        )
    new = split_lines(text.with_own_newlines(inserted)) or [""]
    body = "\n".join([*lines[:after_line], *new, *lines[after_line:]])
    ended = not text.body or text.body.endswith("\n")
    after = text.with_body(body + "\n" if ended else body)
    return Rewrite(after, after_line + 1, after_line + len(new))


def compare_texts(before: Text, after: Text) -> Rewrite:
    """Return `after` with the range of its lines that differ from `before`."""
    old, new = before.lines, after.lines
    shared = 0
    while shared < min(len(old), len(new)) and old[shared] == new[shared]:
        shared += 1
    tail = 0
    while tail < min(len(old), len(new)) - shared and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return Rewrite(after, shared + 1, len(new) - tail)


def _find_unique_match(text: Text, old: str, new: str, name: str) -> int:
    if not old:
        raise ToolFailed("`old_str` is empty: give the text to replace, or use `insert`.")
    if old == new:
        raise ToolFailed("`old_str` and `new_str` are the same: nothing would change.")
    # Overlapping occurrences too, as they are ambiguous.
    hits = re.finditer(f"(?={re.escape(old)})", text.body)
    matches = [match.start() for match in islice(hits, _MAX_MATCHES)]
    if not matches:
        raise ToolFailed(f"`old_str` does not occur in `{name}`. {_suggest_fix(text, old)}")
    if len(matches) > 1:
        lines = sorted({text.body.count("\n", 0, at) + 1 for at in matches})
        suffix = " and more" if len(matches) == _MAX_MATCHES else ""
        raise ToolFailed(
            f"`old_str` occurs more than once in `{name}`, at lines {', '.join(map(str, lines))}"
            f"{suffix}: take more of the lines around it into `old_str`."
        )
    return matches[0]


def _suggest_fix(text: Text, old: str) -> str:
    at = text.body.find(old.strip()) if old.strip() else -1
    if at >= 0:
        line = text.body.count("\n", 0, at) + 1
        return f"Line {line} has it with other whitespace around: copy it exactly."
    if text.newline == "\n" and "\r\n" in text.body:
        return "The file mixes line ends, so `old_str` needs \\r\\n where the file has it."
    return "View the file and copy the text exactly, without the line numbers."
