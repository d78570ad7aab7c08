"""Who waits for an answer is told in our own words that none came."""

import asyncio

import pytest

from client.errors import TimedOut
from tests.house import House, says


async def test_an_update_that_no_worker_takes_times_out(house: House) -> None:
    conversation = await house.client.start("Go.", house.spec(says("Done.")))
    with pytest.raises(TimedOut, match=r"^No worker took the submit_message within 0\.5 s\.$"):
        await conversation.submit("Is anybody there?", "m", wait=0.5)
    # It was not lost: the first worker that comes takes it.
    async with house.worker():
        await conversation.finished("m")


async def test_one_who_waits_can_be_cancelled(house: House) -> None:
    conversation = await house.client.start("Go.", house.spec(says("Done.")))
    waiting = asyncio.create_task(conversation.submit("Is anybody there?", "m", wait=60))
    await asyncio.sleep(0.5)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
