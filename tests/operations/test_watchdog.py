"""How often the watchdog of a worker checks conversations."""

import asyncio
from itertools import pairwise
from time import monotonic
from typing import Any

from perdure.operations.watchdog import ROUND_SHARE, Watchdog


class SlowWatchdog(Watchdog):
    """A watchdog whose rounds take a while; the store is well."""

    def __init__(self, seconds: float) -> None:
        client: Any = None
        super().__init__(client, interval=0.01)
        self.seconds = seconds
        self.rounds: list[tuple[float, float]] = []
        self.is_done = asyncio.Event()

    async def _check_store(self) -> None:
        """Check nothing."""

    async def check_conversations(self) -> None:
        began = monotonic()
        await asyncio.sleep(self.seconds)
        self.rounds.append((began, monotonic()))
        if len(self.rounds) == 3:
            self.is_done.set()


async def test_rounds_that_take_long_are_followed_by_a_longer_pause() -> None:
    watchdog = SlowWatchdog(0.02)
    async with watchdog.watch(), asyncio.timeout(60):
        await watchdog.is_done.wait()
    for (began, ended), (began_next, _) in pairwise(watchdog.rounds):
        assert ended - began <= ROUND_SHARE * (began_next - began)
