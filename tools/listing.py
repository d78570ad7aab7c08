"""Files and directories as the model is shown them."""

import os
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from tools.workspace import printable

LONGEST = 30_000
"""Characters of a file that are shown at once."""

MOST_ENTRIES = 1_000
AROUND = 4
"""Lines shown before and after an edit."""


def numbered(lines: Sequence[str], first: int, last: int) -> str:
    """Lines `first` to `last`, counted from 1, as `cat -n` prints them; whole lines that fit."""
    rows: list[str] = []
    room = LONGEST
    for number in range(first, last + 1):
        row = f"{number:6}\t{lines[number - 1]}"
        if len(row) > room and rows:
            rows.append(f"[lines {number} to {last} are left out: use `view_range` to see them]")
            break
        rows.append(row if len(row) <= room else _clipped(row, room))
        room -= len(row) + 1
    return "\n".join(rows)


def _clipped(row: str, room: int) -> str:
    return f"{row[:room]}[{len(row) - room:,} more characters of this line are left out]"


def around(lines: Sequence[str], first: int, last: int) -> str:
    """Lines `first` to `last` with some before and after."""
    return numbered(lines, max(1, first - AROUND), min(len(lines), last + AROUND))


def tree(directory: Path) -> str:
    """What is in a directory and in its directories, one path a line, without hidden files."""
    rows = _entries(directory, "", levels=2)
    shown = list(islice(rows, MOST_ENTRIES))
    if more := sum(1 for _ in rows):
        shown.append(f"[{more:,} more are left out: view a directory further down]")
    hidden = sum(1 for entry in directory.iterdir() if entry.name.startswith("."))
    if hidden:
        shown.append(f"[{hidden} hidden entries are not shown]")
    return "\n".join(shown) or "(empty)"


def _entries(directory: Path, prefix: str, levels: int) -> Iterator[str]:
    try:
        with os.scandir(directory) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except PermissionError:
        yield f"{prefix}(unreadable)"
        return
    for entry in found:
        if entry.name.startswith("."):
            continue
        name = prefix + printable(entry.name)
        if entry.is_symlink():
            yield f"{name} -> {printable(Path(entry).readlink())}"
        elif entry.is_dir():
            yield f"{name}/"
            if levels > 1:
                yield from _entries(Path(entry), f"{name}/", levels - 1)
        else:
            yield name
