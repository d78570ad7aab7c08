"""The growth of a text of which only the end is known, and events that come between two looks."""

import asyncio
from contextlib import aclosing

import pytest

from perdure.client.http.client import HttpClient
from perdure.client.turn import find_growth
from perdure.storage.credentials.api_keys import create_api_key
from perdure.storage.keys import LAST_SEQ
from tests.gateway.stage import open_gateway
from tests.harness import ConversationHarness, text_answer


@pytest.mark.parametrize(
    ("sent", "newest", "growth"),
    [
        ("", "abc", "abc"),
        ("abc", "abcdef", "def"),
        ("abcdef", "defgh", "gh"),
        ("abc", "abc", ""),
        ("abab", "ababab", "ab"),
    ],
)
def test_growth_is_found_in_a_text_of_which_only_the_end_is_known(
    sent: str, newest: str, growth: str
) -> None:
    assert find_growth(sent, newest) == growth


async def test_what_was_recorded_since_the_caller_read_is_news(
    harness: ConversationHarness,
) -> None:
    async with harness.worker():
        conversation = await harness.client.start("Hi.", harness.spec(text_answer("Hello.")))
        await conversation.result()
        end = await conversation.log.end()
        assert await conversation.workflow.has_news(end - 1)
        for none in (end, LAST_SEQ + 1, 2**53):
            assert not await conversation.workflow.has_news(none)


@pytest.mark.long
async def test_a_tail_that_is_left_early_leaves_nothing_at_work(
    harness: ConversationHarness,
) -> None:
    key = await create_api_key(harness.client.store, harness.client.user_id, "tail", ["read"])
    async with harness.worker(), open_gateway(harness) as gateway:
        conversation = await harness.client.start("Hi.", harness.spec(text_answer("Hello.")))
        await conversation.result()
        async with HttpClient(gateway.url, key.secret) as client:
            async with aclosing(client.conversation(conversation.id).log.tail()) as entries:
                await anext(entries)
            await asyncio.sleep(0)  # a generator that nobody closed is closed by a task
            assert "async_generator" not in str(asyncio.all_tasks())
