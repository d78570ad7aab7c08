"""Paths in a conversation's workspace, none of which leads out of it."""

import os
import posixpath
from pathlib import Path

from perdure.sandbox.safe_path import SafePath
from perdure.tools.tool import ToolFailed


def resolve_in_workspace(workspace: Path, name: str) -> SafePath:
    """Resolve `name`, relative or absolute, to a path in `workspace`. Raises ToolFailed."""
    try:
        root = workspace.resolve(strict=True)
        path = (root / name).resolve()
    except (OSError, RuntimeError, ValueError) as error:  # too long, a loop of links, a NUL
        raise ToolFailed(f"`{printable(name)}` is not a usable path: {error}.") from error
    if not path.is_relative_to(root):
        raise ToolFailed(
            f"`{printable(name)}` leads out of the workspace: use a path relative to it, such as "
            f"`notes.txt` or `src/main.py`. The workspace is {printable(root)}."
        )
    return SafePath(root, path)


def relative_name(path: SafePath) -> str:
    """Return the name relative to the workspace, which is the same on every machine."""
    return printable(path.path.relative_to(path.root))


def printable(name: str | Path) -> str:
    """Return a file's name as valid Unicode: a name on disk may hold any bytes."""
    return os.fsencode(name).decode(errors="replace")


def file_resource(name: str) -> str | None:
    """Return the resource (see `Tool.resources`) of the file that the model calls `name`.

    None for an absolute name or one with `..`, which only the workspace itself can resolve.
    """
    if name.startswith("/") or ".." in name.split("/"):
        return None
    return f"file:{posixpath.normpath(name or '.')}"
