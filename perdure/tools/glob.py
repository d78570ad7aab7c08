"""Finding files by their names."""

from typing import Annotated

from pydantic import Field

from perdure.tools.function import tool, tool_from
from perdure.tools.ripgrep import Report, find_ignored, glob_option, list_files
from perdure.tools.tool import Context, ToolFailed
from perdure.tools.workspace import printable, resolve_in_workspace

MAX_NAMED_FILES = 100


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
    start = resolve_in_workspace(context.workspace, path)
    if not start.is_dir():
        raise ToolFailed(f"`{path}` is not a directory.")
    option = glob_option(pattern.removeprefix(f"{start.path}/"), start)
    report = Report()
    is_ignored = await find_ignored(context, start, report)
    matching = await list_files(context, start, [option], report)
    files = [file for file in matching if not is_ignored(file)]
    more = len(files) - MAX_NAMED_FILES
    notes = [f"[{more:,} more match: use a narrower pattern or `path`]"] if more > 0 else []
    rows = [printable(file) for file in files[:MAX_NAMED_FILES]]
    lines = rows or [f"No file matches `{pattern}` in `{path}`."]
    return "\n".join([*lines, *notes, *report.notes()])


GLOB = tool_from(glob)
