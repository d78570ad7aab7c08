"""Tools of workers that are to end."""

import asyncio
import contextlib

from perdure.tools.function import tool
from perdure.tools.tool import Context

HOARD: list[bytes] = []


@tool()
async def cling(context: Context) -> str:
    """Heed no cancellation."""
    (context.workspace / "clung").touch()
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(60)


@tool()
async def hoard(megabytes: int) -> str:
    """Take memory, and keep it."""
    for _ in range(megabytes // 10):  # in pieces: a loop that stands still looks lost
        HOARD.append(b"x" * (10 << 20))
        await asyncio.sleep(0.01)
    await asyncio.sleep(3)
    return "I have it all."


TOOLS = (cling, hoard)
