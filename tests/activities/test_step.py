"""An attempt that was silent for too long has been given up, and must not pay for anything."""

import dataclasses
import time
from datetime import timedelta

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.step import BEAT, at_work, must_be_awaited


def environment(patience: float) -> ActivityEnvironment:
    found = ActivityEnvironment()
    found.info = dataclasses.replace(
        found.info, heartbeat_timeout=timedelta(seconds=patience), attempt=1
    )
    return found


async def stalls(seconds: float) -> str:
    async with at_work() as news:
        time.sleep(seconds)  # the loop stands still, as on a machine that swaps
        must_be_awaited(news)
        return "asked"


async def test_who_stood_still_for_too_long_asks_nobody() -> None:
    with pytest.raises(ApplicationError, match="begun again elsewhere") as raised:
        await environment(0.2).run(stalls, 0.3)
    assert not raised.value.non_retryable


async def test_who_is_still_waited_for_goes_on() -> None:
    assert await environment(600.0).run(stalls, BEAT) == "asked"
