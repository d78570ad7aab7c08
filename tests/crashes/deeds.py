"""Tools whose deeds are counted outside, where no crash of a worker undoes them."""

import asyncio
import os
from dataclasses import replace
from pathlib import Path

from tools.function import tool, tool_from
from tools.tool import Context

OUTSIDE = "CRASHES_OUTSIDE"
"""The environment variable that names the folder in which each conversation has one."""

PAUSE = 0.02


def outside(context: Context) -> Path:
    folder = Path(os.environ[OUTSIDE], context.conversation_id)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@tool(read_only=True)
async def look(context: Context) -> str:
    """Look around until somebody has said something."""
    place = outside(context)
    (place / "looking").touch()
    while not (place / "said").exists():
        await asyncio.sleep(PAUSE)
    return "seen"


@tool()
def pay(amount: int, context: Context) -> str:
    """Pay: once and not twice."""
    _line(outside(context) / "paid", str(amount))
    return f"paid {amount}"


@tool()
def jot(line: str, context: Context) -> str:
    """Add a line to the notes: once and not twice."""
    _line(context.workspace / "notes", line)
    _line(outside(context) / "jotted", line)
    return f"jotted {line}"


def _line(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(f"{text}\n")


TOOLS = (
    replace(tool_from(look), touches=lambda _: ("place",)),
    replace(tool_from(pay), touches=lambda _: ("account",)),
    jot,
)
