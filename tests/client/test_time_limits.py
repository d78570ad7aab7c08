"""The errors and cancellation of callers that wait for an answer."""

import asyncio

import pytest

from perdure.errors import TimedOut
from tests.harness import ConversationHarness, text_answer


async def test_an_update_that_no_worker_takes_times_out(harness: ConversationHarness) -> None:
    conversation = await harness.client.start("Go.", harness.spec(text_answer("Done.")))
    with pytest.raises(TimedOut, match=r"^No worker took the submit_message within 0\.5 s\."):
        await conversation.submit("Is anybody there?", "m", max_wait=0.5)
    # The message is not lost: the next worker takes it.
    async with harness.worker():
        await conversation.wait_for_turn("m")


async def test_a_waiting_caller_can_be_cancelled(harness: ConversationHarness) -> None:
    conversation = await harness.client.start("Go.", harness.spec(text_answer("Done.")))
    waiting = asyncio.create_task(conversation.submit("Is anybody there?", "m", max_wait=60))
    await asyncio.sleep(0.5)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
