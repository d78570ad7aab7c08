"""Tools for tests: what they did can be counted outside."""

import asyncio
from pathlib import Path

from tools.function import tool
from tools.tool import Context


@tool(read_only=True, idempotent=True)
def add(a: int, b: int) -> int:
    """Add two whole numbers."""
    return a + b


@tool()
async def charge(amount: int, seconds: float, context: Context) -> str:
    """Take money: once and not twice. Waits `seconds` after it did."""
    _note(context.workspace / "charged", amount)
    context.progress(f"charged {amount}")
    await asyncio.sleep(seconds)
    return f"charged {amount}"


@tool(idempotent=True)
async def look(seconds: float, context: Context) -> str:
    """Look, slowly; looking twice does no harm."""
    _note(context.workspace / "looked", 1)
    await asyncio.sleep(seconds)
    return "seen"


@tool()
def fail(why: str) -> str:
    """Always fails."""
    raise RuntimeError(why)


def _note(path: Path, what: int) -> None:
    with path.open("a") as notes:
        notes.write(f"{what}\n")


@tool(read_only=True)
async def meet(name: str, other: str, context: Context) -> str:
    """Wait until the other one is here too."""
    (context.workspace / name).touch()
    while not (context.workspace / other).exists():
        await asyncio.sleep(0.01)
    return f"met {other}"


TOOLS = (add, charge, look, fail, meet)
