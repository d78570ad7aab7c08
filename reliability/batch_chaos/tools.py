"""Tools that work on the files of a sample, and may be run twice."""

import shutil

from perdure.tools.function import tool
from perdure.tools.tool import Context


@tool(idempotent=True)
async def copy(source: str, target: str, context: Context) -> str:
    """Copy a file."""
    shutil.copyfile(context.workspace / source, context.workspace / target)
    return f"{target} is there."


@tool(read_only=True, idempotent=True)
async def peek(path: str, context: Context) -> str:
    """Return the content of a file."""
    return (context.workspace / path).read_text().strip()


TOOLS = (copy, peek)
