"""Tools for tests, which change the session state."""

import asyncio

from perdure.storage.shared_values import ANY, write_shared_value
from perdure.tools.function import tool
from perdure.tools.tool import Context


def _add_one(value: int | None) -> int:
    return (value or 0) + 1


@tool(idempotent=True)
async def count_up(seconds: float, context: Context) -> str:
    """Count, for the conversation and for its user. Waits `seconds` in between."""
    count = await context.state.update("count", _add_one)
    await asyncio.sleep(seconds)
    await context.state.update("user:count", _add_one)
    return f"counted to {count}"


@tool(idempotent=True)
async def count_and_fail(context: Context) -> str:
    """Count, and fail."""
    await context.state.update("user:count", _add_one)
    await context.state.set("count", 1)
    raise RuntimeError("it failed after it has counted")


@tool(idempotent=True)
async def write_app(context: Context) -> str:
    """Write a value of all users."""
    await context.state.set("app:motd", "mine")
    return "written"


@tool(idempotent=True)
async def overwrite(context: Context) -> str:
    """Read a shared value, and write it after somebody else has."""
    assert await context.state.get("user:count", "none") == "none"
    log = context.log
    await write_shared_value(log.store, log.user_id, "user:count", "theirs", ANY, "another")
    await context.state.set("own", 1)
    await context.state.set("user:count", "mine")
    return "written"


TOOLS = (count_up, count_and_fail, write_app, overwrite)
