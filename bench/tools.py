"""Tools that cost next to nothing."""

import inspect
import os
from pathlib import Path

from perdure.tools.function import tool

BRIEF_DECLARATION = {
    flag: True
    for flag in ("read_only", "idempotent", "brief")
    if flag in inspect.signature(tool).parameters  # of a checkout that does not know it yet
}


@tool(read_only=True, idempotent=True)
async def add(a: int, b: int) -> int:
    """Add two whole numbers."""
    return a + b


@tool(**BRIEF_DECLARATION, name="add")
async def add_briefly(a: int, b: int) -> int:
    """Add two whole numbers."""
    return a + b


@tool
async def note(line: str) -> str:
    """Note a line."""
    with Path(os.environ["TOOL_CALLS"]).open("a") as calls:
        calls.write(f"{line}\n")
    return "It is noted."
