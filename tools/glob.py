"""Finding files by their names."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from pydantic import Field

from tools.function import tool, tool_from
from tools.searching.walk import Search, newest, searched
from tools.searching.wildcards import matcher
from tools.tool import Context, ToolFailed
from tools.workspace import inside, printable

MOST = 100
"""Files that are named."""


@tool(read_only=True, idempotent=True, open_world=False)
async def glob(
    context: Context,
    pattern: Annotated[str, Field(description="What to look for, such as `src/**/*.{ts,tsx}`.")],
    path: Annotated[
        str, Field(description="The directory to look in, relative to the workspace.")
    ] = ".",
) -> str:
    """Find files by their names: the 100 that were changed last, those first.

    * `*` and `?` stand for letters of one name, `**` for any directories, `[...]` for one of \
some letters, `{a,b}` for either.
    * A pattern without `/` finds names at any depth: `*.py` is as good as `**/*.py`. Any other \
is read from `path` on.
    * Hidden files are found as well. What `.gitignore` names is left out, and so is `.git`: to \
look there, name it as `path`.
    """
    start = inside(context.workspace, path)
    if not start.is_dir():
        raise ToolFailed(f"`{path}` is not a directory.")
    try:
        wanted = matcher(pattern.removeprefix(f"{start.path}/"))
    except ValueError as error:
        raise ToolFailed(str(error)) from error
    rows, notes = await searched(lambda search: _found(start.root, start.path, wanted, search))
    found = "\n".join(rows) or f"No file matches `{pattern}` in `{path}`."
    return "\n".join([found, *notes])


def _found(
    root: Path, start: Path, wanted: Callable[[str], bool], search: Search
) -> tuple[list[str], list[str]]:
    """The files to name, and what to know of the others."""
    found = newest(root, start, wanted, search)
    more = len(found) - MOST
    note = [f"[{more:,} more match: use a narrower pattern or `path`]"] if more > 0 else []
    return [printable(one.path) for one in found[:MOST]], note + search.notes()


GLOB = tool_from(glob)
