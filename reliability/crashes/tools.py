"""Tools whose side effects are files outside of the workspace, which no crash undoes."""

import asyncio
import os
from dataclasses import replace
from pathlib import Path

from perdure.tools.function import tool, tool_from
from perdure.tools.tool import Context

EFFECTS_FOLDER = "CRASHES_OUTSIDE"
"""The environment variable that names the folder in which each conversation has one."""

POLL_INTERVAL = 0.02

PONDER_SECONDS = 1.2


def effects_folder(context: Context) -> Path:
    folder = Path(os.environ[EFFECTS_FOLDER], context.conversation_id)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@tool(read_only=True)
async def look(context: Context) -> str:
    """Look around until somebody has said something."""
    place = effects_folder(context)
    (place / "looking").touch()
    while not (place / "said").exists():
        await asyncio.sleep(POLL_INTERVAL)
    return "seen"


@tool()
def pay(amount: int, context: Context) -> str:
    """Pay: once and not twice."""
    _line(effects_folder(context) / "paid", str(amount))
    return f"paid {amount}"


@tool()
def jot(line: str, context: Context) -> str:
    """Add a line to the notes: once and not twice."""
    _line(context.workspace / "notes", line)
    _line(effects_folder(context) / "jotted", line)
    return f"jotted {line}"


def _line(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(f"{text}\n")


@tool(read_only=True, brief=True)
async def peek(at: str) -> str:
    """Look at something for a moment."""
    return f"saw {at}"


@tool(idempotent=True, brief=True)
async def ponder() -> str:
    """Think for longer than a local activity may take."""
    await asyncio.sleep(PONDER_SECONDS)
    return "pondered"


TOOLS = (
    replace(tool_from(look), resources=lambda _: ("place",)),
    replace(tool_from(pay), resources=lambda _: ("account",)),
    jot,
    peek,
    ponder,
)
