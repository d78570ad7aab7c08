"""Files and directories as the model is shown them."""

import os
from collections.abc import Iterator, Sequence
from itertools import islice

from perdure.sandbox.safe_path import SafePath
from perdure.tools.workspace import printable

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
        if (more := len(row) - room) > 0:
            row = f"{row[:room]}[{more:,} more characters of this line are left out]"
        rows.append(row)
        room -= len(row) + 1
    return "\n".join(rows)


def around(lines: Sequence[str], first: int, last: int) -> str:
    """Lines `first` to `last` with some before and after."""
    return numbered(lines, max(1, first - AROUND), min(len(lines), last + AROUND))


def tree(directory: SafePath) -> str:
    """List a directory and its directories, a path a line, without hidden files."""
    rows = _entries(directory, "", levels=2)
    shown = list(islice(rows, MOST_ENTRIES))
    if more := sum(1 for _ in rows):
        shown.append(f"[{more:,} more are left out: view a directory further down]")
    with directory.scan() as (_, entries):
        hidden = sum(1 for entry in entries if entry.name.startswith("."))
    if hidden:
        shown.append(f"[{hidden} hidden entries are not shown]")
    return "\n".join(shown) or "(empty)"


def _entries(directory: SafePath, prefix: str, levels: int) -> Iterator[str]:
    try:
        found = _named(directory)
    except OSError:  # closed to us, or gone, or something else by now
        yield f"{prefix}(unreadable)"
        return
    for name, is_folder, target in found:
        path = prefix + printable(name)
        arrow = "" if target is None else f" -> {printable(target)}"
        yield f"{path}/" if is_folder else f"{path}{arrow}"
        if is_folder and levels > 1:
            inner = SafePath(directory.root, directory.path / name)
            yield from _entries(inner, f"{path}/", levels - 1)


def _named(directory: SafePath) -> list[tuple[str, bool, str | None]]:
    """Yield the name, the kind and the target of a link of each entry that is not hidden."""
    with directory.scan() as (folder, entries):
        return sorted(
            (
                entry.name,
                entry.is_dir(follow_symlinks=False),
                os.readlink(entry.name, dir_fd=folder) if entry.is_symlink() else None,
            )
            for entry in entries
            if not entry.name.startswith(".")
        )
