"""What kills each kind of process every few seconds, and starts it again."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from time import monotonic

from reliability.following.stage import Stage

EVERY = 5.0
"""Seconds from one kill of a kind to the next."""


def make_killers(
    stage: Stage, counts: Counter[str], over: asyncio.Event, chance: random.Random
) -> list[Coroutine[None, None, None]]:
    """Make a killer of workers, one of gateways and one of Temporal, which count their kills."""

    async def kill_worker() -> None:
        await stage.workers.kill(chance.choice(list(stage.workers.workers)))

    async def kill_gateway() -> None:
        gateway = chance.choice(stage.gateways)
        await gateway.kill()
        await gateway.start()

    async def kill_temporal() -> None:
        await stage.temporal.kill()
        await stage.temporal.start()

    async def keep_killing(name: str, first: float, kill: Callable[[], Awaitable[None]]) -> None:
        pause = first
        while not await is_set_within(over, pause):
            killed = monotonic()
            await kill()
            counts[f"{name} killed"] += 1
            pause = max(0.1, EVERY - (monotonic() - killed))

    kinds = {"worker": kill_worker, "gateway": kill_gateway, "temporal": kill_temporal}
    return [
        keep_killing(name, EVERY * (1 + nth / len(kinds)), kill)
        for nth, (name, kill) in enumerate(kinds.items())
    ]


async def is_set_within(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False
