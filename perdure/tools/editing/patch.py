"""The parser for patches: the text from `*** Begin Patch` to `*** End Patch`.

The format is that of OpenAI's `apply_patch`, with the deviations that models make: a code fence or
a shell's here-document around, a unified diff's numbers after `@@`, several `@@` in a row, an empty
line in place of one with a single space.
"""

import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from perdure.tools.editing.text_file import Text

Sign: TypeAlias = Literal[" ", "+", "-"]
NumberedLine: TypeAlias = tuple[int, str]
"""A line of the patch, counted from 1."""

_HEADER = re.compile(r"\*\*\* (Add|Update|Delete) File:(?=\s*\S)(.*)")
_MOVE_TO = "*** Move to:"
_DIFF_NUMBERS = re.compile(r"-\d+(,\d+)? \+\d+(,\d+)? @@.*")
_END_OF_FILE = "*** End of File"


class PatchError(ValueError):
    """A patch cannot be parsed or does not apply; the text says where and why."""


@dataclass(frozen=True)
class Hunk:
    """Lines to keep, remove and add, located in the file after the lines that `anchors` name."""

    line: int
    anchors: tuple[str, ...]
    lines: tuple[tuple[Sign, str], ...]
    at_end: bool = False

    @property
    def old(self) -> list[str]:
        return [text for sign, text in self.lines if sign != "+"]


@dataclass(frozen=True)
class Add:
    path: str
    body: str


@dataclass(frozen=True)
class Delete:
    path: str


@dataclass(frozen=True)
class Update:
    path: str
    move_to: str | None
    hunks: tuple[Hunk, ...]


Change: TypeAlias = Add | Delete | Update


def parse_patch(text: str) -> tuple[Change, ...]:
    """Parse the changes in their order. Raises PatchError."""
    sections: list[tuple[re.Match[str], list[NumberedLine]]] = []
    for number, line in _extract_lines(text):
        if header := _HEADER.fullmatch(line):
            sections.append((header, []))
        elif sections:
            sections[-1][1].append((number, line))
        elif line.strip():
            raise PatchError(f"{_quote(number, line)} stands before the first file's header.")
    if not sections:
        raise PatchError("The patch names no file: begin with `*** Update File: path` or the like.")
    return tuple(_parse_change(header, _strip_blank_end(body)) for header, body in sections)


def _extract_lines(text: str) -> list[NumberedLine]:
    lines = list(enumerate(Text.from_raw(text).body.split("\n"), 1))
    begins = [number for number, line in lines if line.strip() == "*** Begin Patch"]
    ends = [number for number, line in lines if line.rstrip() == "*** End Patch"]
    if not begins:
        raise PatchError("The patch must begin with the line `*** Begin Patch`.")
    if not ends or ends[-1] < begins[0]:
        raise PatchError("The patch has no line `*** End Patch` at its end: it may be cut off.")
    return lines[begins[0] : ends[-1] - 1]


def _parse_change(header: re.Match[str], body: list[NumberedLine]) -> Change:
    kind, path = header[1], header[2].strip()
    for number, line in body:
        if kind == "Delete" and line.strip():
            raise PatchError(f"{_quote(number, line)}: nothing may follow on a deletion.")
        if kind == "Add" and not line.startswith("+"):
            raise PatchError(
                f"{_quote(number, line)}: every line of the new file `{path}` begins with `+`."
            )
    match kind:
        case "Add":
            return Add(path, "".join(f"{line[1:]}\n" for _, line in body))
        case "Delete":
            return Delete(path)
        case _:
            return _parse_update(path, body)


def _parse_update(path: str, body: list[NumberedLine]) -> Update:
    moves = bool(body) and body[0][1].startswith(_MOVE_TO)
    move_to = body[0][1].removeprefix(_MOVE_TO).strip() if moves else None
    hunks = tuple(_parse_hunks(body[1:] if moves else body))
    if not (hunks or move_to):
        raise PatchError(f"The update of `{path}` says nothing: give it a hunk, or leave it out.")
    return Update(path, move_to, hunks)


def _parse_hunks(body: list[NumberedLine]) -> Iterator[Hunk]:
    remaining = deque(body)
    _pop_while(remaining, lambda line: not line)
    while remaining:
        first = remaining[0][0]
        anchors = _pop_while(remaining, lambda line: line.startswith("@@"))
        lines = _pop_while(remaining, lambda line: not line.startswith(("@@", "***")))
        at_end = bool(remaining) and remaining[0][1].rstrip() == _END_OF_FILE
        signed_lines = tuple(_parse_hunk_line(*line) for line in _strip_blank_end(lines))
        if not at_end and remaining and remaining[0][1].startswith("***"):
            raise PatchError(f"{_quote(*remaining[0])} is no line of a hunk and no header.")
        if not signed_lines:
            raise PatchError(f"The hunk at line {first} of the patch has no lines.")
        if at_end:
            remaining.popleft()
        _pop_while(remaining, lambda line: not line)
        yield Hunk(first, tuple(_parse_anchors(anchors)), signed_lines, at_end)


def _parse_anchors(lines: Sequence[NumberedLine]) -> Iterator[str]:
    """Yield the anchors after `@@`, without a unified diff's line numbers."""
    for _, line in lines:
        anchor = line.removeprefix("@@").removeprefix(" ")
        if anchor.strip() and not _DIFF_NUMBERS.fullmatch(anchor):
            yield anchor


def _parse_hunk_line(number: int, line: str) -> tuple[Sign, str]:
    match line[:1]:
        case "":
            return " ", ""
        case " " | "+" | "-" as sign:
            return sign, line[1:]
    raise PatchError(f"{_quote(number, line)}: it must begin with a space, `+`, `-` or `@@`.")


def _strip_blank_end(lines: list[NumberedLine]) -> list[NumberedLine]:
    remaining = [*lines]
    while remaining and not remaining[-1][1]:
        remaining.pop()
    return remaining


def _pop_while(lines: deque[NumberedLine], matches: Callable[[str], bool]) -> list[NumberedLine]:
    popped = []
    while lines and matches(lines[0][1]):
        popped.append(lines.popleft())
    return popped


def _quote(number: int, line: str) -> str:
    return f"Line {number} of the patch ({line[:80]!r})"
