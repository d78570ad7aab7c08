"""A tool that costs nothing."""

from perdure.tools.function import tool


@tool(read_only=True, idempotent=True)
async def add(a: int, b: int) -> int:
    """Add two whole numbers."""
    return a + b
