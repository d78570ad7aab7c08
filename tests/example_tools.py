"""Tools for tests, whose effects can be counted outside."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from perdure.tools.function import tool, tool_from
from perdure.tools.tool import Context, Tool


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


@tool()
def stumble(context: Context) -> str:
    """Always fails, each time in other words."""
    _note(context.workspace / "stumbled", 1)
    times = len((context.workspace / "stumbled").read_text().splitlines())
    raise RuntimeError(f"stumbled {times} times")


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


@tool()
async def deposit(account: str, seconds: float, context: Context) -> str:
    """Put something into an account: once and not twice. Waits `seconds` after it did."""
    _note(context.workspace / account, 1)
    await asyncio.sleep(seconds)
    return f"put into {account}"


def account_of(action: Any) -> tuple[str, ...]:
    return (f"account:{action.data['account']}",)


DEPOSIT = replace(tool_from(deposit), resources=account_of)

TOOLS = (add, charge, look, fail, stumble, meet, DEPOSIT)


@tool(read_only=True)
async def dawdle(seconds: float, context: Context) -> str:
    """Look for so long, whoever wants it to stop."""
    _note(context.workspace / "dawdled", 1)
    looking = asyncio.create_task(asyncio.sleep(seconds))
    try:
        await asyncio.shield(looking)
    except asyncio.CancelledError:
        await looking
    return f"looked {len((context.workspace / 'dawdled').read_text().splitlines())} times"


PAUSES: list[Callable[[str], Awaitable[None]]] = []
"""Pauses of a test, which take the id of the conversation."""


@tool(idempotent=True)
async def pause_itself(context: Context) -> str:
    """Pause the conversation that makes the call."""
    await PAUSES[-1](context.conversation_id)
    return "paused"


def _brief(function: Any) -> Tool:
    tool = tool_from(function)
    return replace(tool, definition=tool.definition.model_copy(update={"brief": True}))


BRIEF_TOOLS = (
    _brief(add),
    charge,
    _brief(look),
    fail,
    stumble,
    _brief(meet),
    _brief(dawdle),
    _brief(pause_itself),
)
"""The same tools; those that may be called again say that they are brief, even if they are not."""
