"""Tools whose effects are counted in a file outside of every workspace."""

import asyncio
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from perdure.tools.function import tool, tool_from
from perdure.tools.tool import Context

EFFECTS = "CHAOS_EFFECTS"
"""The environment variable that names the file."""

TICK = 0.2
"""Seconds between two words of progress."""

UNREPEATABLE_TOOLS = ("charge", "deposit")
"""Those that must not be run twice."""


@dataclass(frozen=True)
class Effect:
    """A line of the file of effects."""

    tool: str
    conversation_id: str
    action_id: str
    pid: int


def read_effects(path: Path) -> list[Effect]:
    lines = (line.split() for line in path.read_text().splitlines())
    return [Effect(name, where, action, int(pid)) for name, where, action, pid in lines]


@tool()
async def charge(amount: int, seconds: float, context: Context) -> str:
    """Take money, once and not twice; half-way through `seconds` it is taken."""
    return await run_slowly("charge", amount, seconds, context)


@tool()
async def deposit(account: str, amount: int, seconds: float, context: Context) -> str:
    """Put something into an account, once and not twice."""
    return await run_slowly("deposit", amount, seconds, context) + f" into {account}"


@tool(read_only=True, idempotent=True)
async def look(number: int, seconds: float, context: Context) -> str:
    """Look, slowly; looking twice does no harm."""
    return await run_slowly("look", number, seconds, context)


async def run_slowly(name: str, number: int, seconds: float, context: Context) -> str:
    await heartbeat_for(seconds / 2, context)
    write_effect(name, context)
    context.progress(f"{name} {number}: it has taken effect")
    await heartbeat_for(seconds / 2, context)
    return f"{name} {number}: done"


async def heartbeat_for(seconds: float, context: Context) -> None:
    ticks = max(1, round(seconds / TICK))
    for tick in range(ticks):
        context.progress(f"{tick} of {ticks}")
        await asyncio.sleep(seconds / ticks)


def write_effect(name: str, context: Context) -> None:
    # One write of a short line to a file opened to append: no two lines mix, whoever is killed.
    line = f"{name} {context.conversation_id} {context.action_id} {os.getpid()}\n"
    descriptor = os.open(os.environ[EFFECTS], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


def account_of(action: Any) -> tuple[str, ...]:
    return (f"account:{action.data['account']}",)


TOOLS = (charge, replace(tool_from(deposit), resources=account_of), look)
