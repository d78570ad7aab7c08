"""The directory of a conversation, which no path leaves."""

import os
import posixpath
from pathlib import Path

from sandbox.spot import Spot
from tools.tool import ToolFailed


def inside(workspace: Path, name: str) -> Spot:
    """Where `name` leads, with every symlink followed: always in `workspace`.

    `name` is relative to the workspace, or absolute and in it. Raises ToolFailed.
    """
    try:
        root = workspace.resolve(strict=True)
        place = (root / name).resolve()
    except (OSError, RuntimeError, ValueError) as error:  # too long, a loop of links, a NUL
        raise ToolFailed(f"`{printable(name)}` is not a usable path: {error}.") from error
    if not place.is_relative_to(root):
        raise ToolFailed(
            f"`{printable(name)}` leads out of the workspace: use a path relative to it, such as "
            f"`notes.txt` or `src/main.py`. The workspace is {printable(root)}."
        )
    return Spot(root, place)


def named(spot: Spot) -> str:
    """What a place in the workspace is called there: the same on every machine."""
    return printable(spot.path.relative_to(spot.root))


def printable(name: str | Path) -> str:
    """A file's name as text that can be stored: a name on disk may hold any bytes."""
    return os.fsencode(name).decode(errors="replace")


def file_resource(name: str) -> str | None:
    """What `touches` says of the file that the model calls `name`.

    None for a name that only the workspace itself can tell from others: absolute, or with `..`.
    """
    if name.startswith("/") or ".." in name.split("/"):
        return None
    return f"file:{posixpath.normpath(name or '.')}"
