"""How often the watchdog of a worker checks conversations."""

import asyncio
from itertools import pairwise
from time import monotonic
from typing import Any

from perdure.client.ids import new_conversation_id
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


class ListedWatchdog(Watchdog):
    """A watchdog of three conversations that notes which it checks."""

    def __init__(self) -> None:
        client: Any = None
        super().__init__(client)
        self.checked: list[str] = []

    async def _build_queries(self) -> list[str]:
        return ["all"]

    async def _list_page(self, query: str) -> list[str]:  # noqa: ARG002
        return list(IDS)

    async def _check(self, workflow_id: str) -> None:
        self.checked.append(workflow_id)


IDS = tuple(f"conv-{new_conversation_id()}" for _ in range(3))


async def test_a_conversation_that_had_a_step_is_not_checked_in_the_next_round() -> None:
    watchdog = ListedWatchdog()
    for workflow_id in IDS[:2]:
        watchdog.note_progress(workflow_id)
    watchdog.suspect(IDS[0])
    await watchdog.check_conversations()
    assert watchdog.checked == [IDS[0], IDS[2]], "what failed is checked all the same"
    watchdog.checked.clear()
    await watchdog.check_conversations()
    assert watchdog.checked == list(IDS)
