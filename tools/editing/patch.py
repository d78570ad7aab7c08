"""Reading patches: what is between `*** Begin Patch` and `*** End Patch`.

The format is that of OpenAI's `apply_patch`, with what models add to it or get wrong in it: a code
fence or a shell's here-document around, a unified diff's numbers after `@@`, several `@@` in a
row, an empty line where one with a space was due.
"""

import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tools.editing.text_file import Text

Sign: TypeAlias = Literal[" ", "+", "-"]
Numbered: TypeAlias = tuple[int, str]
"""A line of the patch, counted from 1."""

_HEADER = re.compile(r"\*\*\* (Add|Update|Delete) File:(?=\s*\S)(.*)")
_MOVE_TO = "*** Move to:"
_DIFF_NUMBERS = re.compile(r"-\d+(,\d+)? \+\d+(,\d+)? @@.*")
_END_OF_FILE = "*** End of File"


class PatchError(ValueError):
    """A patch that cannot be read or does not fit; the text says where and why."""


@dataclass(frozen=True)
class Hunk:
    """Lines that stay, go and come, found in the file behind the lines that `anchors` name."""

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


def parsed(text: str) -> tuple[Change, ...]:
    """What the patch asks for, in its order. Raises PatchError."""
    changes = tuple(_change(header, body) for header, body in _sections(_content(text)))
    if not changes:
        raise PatchError("The patch names no file: begin with `*** Update File: path` or the like.")
    return changes


def _content(text: str) -> list[Numbered]:
    """The lines between the marks; what is around those is the wrapping."""
    lines = list(enumerate(Text.of(text).body.split("\n"), 1))
    begins = [number for number, line in lines if line.strip() == "*** Begin Patch"]
    ends = [number for number, line in lines if line.rstrip() == "*** End Patch"]
    if not begins:
        raise PatchError("The patch must begin with the line `*** Begin Patch`.")
    if not ends or ends[-1] < begins[0]:
        raise PatchError("The patch has no line `*** End Patch` at its end: it may be cut off.")
    return lines[begins[0] : ends[-1] - 1]


def _sections(lines: Sequence[Numbered]) -> Iterator[tuple[re.Match[str], list[Numbered]]]:
    """Each header with the lines that belong to it."""
    headers = [
        (at, found) for at, (_, line) in enumerate(lines) if (found := _HEADER.fullmatch(line))
    ]
    for number, line in lines[: headers[0][0] if headers else len(lines)]:
        if line.strip():
            raise PatchError(f"{_quoted(number, line)} stands before the first file's header.")
    bounds = [*(at for at, _ in headers), len(lines)]
    for (at, found), end in zip(headers, bounds[1:], strict=True):
        yield found, list(lines[at + 1 : end])


def _change(header: re.Match[str], body: list[Numbered]) -> Change:
    path = header[2].strip()
    match header[1]:
        case "Add":
            return Add(path, "".join(f"{line}\n" for line in _added(body, path)))
        case "Delete":
            for number, line in body:
                if line.strip():
                    raise PatchError(f"{_quoted(number, line)}: nothing may follow on a deletion.")
            return Delete(path)
        case _:
            return _update(path, body)


def _added(body: list[Numbered], path: str) -> Iterator[str]:
    for number, line in _without_blank_end(body):
        if not line.startswith("+"):
            raise PatchError(
                f"{_quoted(number, line)}: every line of the new file `{path}` begins with `+`."
            )
        yield line[1:]


def _update(path: str, body: list[Numbered]) -> Update:
    moves = bool(body) and body[0][1].startswith(_MOVE_TO)
    move_to = body[0][1].removeprefix(_MOVE_TO).strip() if moves else None
    hunks = tuple(_hunks(body[1:] if moves else body))
    if not (hunks or move_to):
        raise PatchError(f"The update of `{path}` says nothing: give it a hunk, or leave it out.")
    return Update(path, move_to, hunks)


def _hunks(body: list[Numbered]) -> Iterator[Hunk]:
    rest = deque(_without_blank_end(body))
    _taken(rest, lambda line: not line)
    while rest:
        first = rest[0][0]
        anchors = _taken(rest, lambda line: line.startswith("@@"))
        lines = _taken(rest, lambda line: not line.startswith(("@@", "***")))
        at_end = bool(rest) and rest[0][1].rstrip() == _END_OF_FILE
        signed = tuple(_signed(number, line) for number, line in _without_blank_end(lines))
        if not at_end and rest and rest[0][1].startswith("***"):
            raise PatchError(f"{_quoted(*rest[0])} is no line of a hunk and no header.")
        if not signed:
            raise PatchError(f"The hunk at line {first} of the patch has no lines.")
        if at_end:
            rest.popleft()
        _taken(rest, lambda line: not line)
        yield Hunk(first, tuple(_anchors(anchors)), signed, at_end)


def _anchors(lines: Sequence[Numbered]) -> Iterator[str]:
    """What the lines after `@@` name; a diff's numbers name nothing."""
    for _, line in lines:
        anchor = line.removeprefix("@@").removeprefix(" ")
        if anchor.strip() and not _DIFF_NUMBERS.fullmatch(anchor):
            yield anchor


def _signed(number: int, line: str) -> tuple[Sign, str]:
    match line[:1]:
        case "":
            return " ", ""
        case " " | "+" | "-" as sign:
            return sign, line[1:]
        case _:
            raise PatchError(
                f"{_quoted(number, line)}: it must begin with a space, `+`, `-` or `@@`."
            )


def _without_blank_end(lines: list[Numbered]) -> list[Numbered]:
    end = len(lines)
    while end and not lines[end - 1][1]:
        end -= 1
    return lines[:end]


def _taken(lines: deque[Numbered], wanted: Callable[[str], bool]) -> list[Numbered]:
    """The first lines, as far as they are wanted; they are gone from `lines`."""
    taken = []
    while lines and wanted(lines[0][1]):
        taken.append(lines.popleft())
    return taken


def _quoted(number: int, line: str) -> str:
    return f"Line {number} of the patch ({line[:80]!r})"
