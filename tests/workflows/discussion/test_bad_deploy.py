"""A discussion whose history no worker can replay."""

import asyncio

import pytest

from perdure.client.discussion.discussions import Discussions
from perdure.errors import Unreachable
from tests.harness import ConversationHarness
from tests.workflows.discussion.debate import debate, wants
from tests.workflows.other_code import NondeterministicDiscussion
from tests.workflows.troubles import TROUBLE_TIMEOUT, other_worker

TIMER_EVENT = 5
"""The history event of the timer that the other code begins with."""


@pytest.mark.long
async def test_its_status_is_a_sentence(harness: ConversationHarness) -> None:
    discussions = Discussions.from_client(harness.client)
    async with other_worker(harness, NondeterministicDiscussion), asyncio.timeout(TROUBLE_TIMEOUT):
        handle = await discussions.start(debate(harness.folder, {"ada": [wants(1)]}), "talk")
        while (await handle.handle.describe()).history_length < TIMER_EVENT:
            await asyncio.sleep(0.05)
    async with harness.worker():
        with pytest.raises(Unreachable, match="do not know where the discussion stands"):
            await handle.status()
    await handle.handle.terminate()
