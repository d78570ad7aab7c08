"""The steps at work are shown again after an outage."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from perdure.cli.chat import turn_watch
from perdure.client.running_step import RunningStep
from perdure.errors import Unreachable

STEP = RunningStep("tool.call", "1", 1, "tick 1", "run")


class Reconnecting:
    """A conversation whose gateway is away at first."""

    attempts = 0

    async def watch_running_steps(self) -> AsyncIterator[tuple[RunningStep, ...]]:
        self.attempts += 1
        if self.attempts == 1:
            raise Unreachable("The gateway is gone.")
        yield (STEP,)
        await asyncio.Future()

    async def diagnose(self) -> None:
        return None


async def test_steps_are_shown_again_after_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn_watch, "TROUBLE_CHECK_INTERVAL", 0.01)
    shown: asyncio.Queue[tuple[RunningStep, ...]] = asyncio.Queue()
    conversation: Any = Reconnecting()
    watching = turn_watch.watch_turn(conversation, shown.put_nowait, lambda: None)
    task = asyncio.create_task(watching)
    assert await asyncio.wait_for(shown.get(), 30) == (STEP,)
    task.cancel()
    await asyncio.wait([task])
