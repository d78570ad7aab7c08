"""What clients are told of what goes wrong."""

import asyncio

import pytest

from perdure.gateway.following.followers import Followers
from perdure.storage.files import FileStore
from reliability.following.watcher import wait_for_status, watching
from tests.harness import ConversationHarness, text_answer

pytestmark = pytest.mark.long

SLOW_WORDS = {"content": "one two three four five six seven eight nine", "chunk_delay": 0.2}


async def test_a_text_without_an_event_is_taken_back(
    harness: ConversationHarness, followers: Followers
) -> None:
    conversation = await harness.client.start("Count.", harness.spec(SLOW_WORDS))
    async with watching(followers, "local", conversation.id) as watcher:
        async with asyncio.timeout(30):
            while not watcher.texts:
                await asyncio.sleep(0.02)
        await conversation.handle.terminate()
        async with asyncio.timeout(30):
            while not (watcher.status.trouble and not watcher.texts):
                await asyncio.sleep(0.02)
    assert [frame.kind for frame in watcher.frames].count("item_aborted") == 1
    assert watcher.status.status == "running"
    assert "workflow has ended in the middle" in (watcher.status.trouble or "")


async def test_a_model_that_is_asked_again_is_a_notice(
    harness: ConversationHarness, followers: Followers
) -> None:
    failures = [{"status": 503}, {"status": 503}]
    spec = harness.spec({**SLOW_WORDS, "failures": failures})
    conversation = await harness.client.start("Count.", spec)
    async with watching(followers, "local", conversation.id) as watcher:
        await wait_for_status(watcher, "finished")
    assert {notice.id for notice in watcher.notices} == {"STATUS$LLM_RETRY"}
    assert 1 <= len(watcher.notices) <= 2
    assert all("overloaded" in notice.message for notice in watcher.notices)


async def test_a_damaged_slot_ends_the_connection(
    harness: ConversationHarness, followers: Followers
) -> None:
    spec = harness.spec(text_answer("Hello."), finished_timeout=0.1)
    conversation = await harness.client.start("Hi.", spec)
    await conversation.handle.result()
    async with watching(followers, "local", conversation.id) as watcher:
        await wait_for_status(watcher, "finished")
        log, store = conversation.log, harness.client.store
        assert isinstance(store, FileStore)
        key = (await log.lineage())[0].key(watcher.next_seq)
        assert await store.create(key, b"not an event")
        followers.hint("local", conversation.id)
        async with asyncio.timeout(30):
            while watcher.error is None:
                await asyncio.sleep(0.02)
    assert watcher.error.code == "damaged"
    assert f"at seq {watcher.next_seq}" in watcher.error.detail


@pytest.mark.long
async def test_a_conversation_without_a_worker_says_so(harness: ConversationHarness) -> None:
    followers = Followers(harness.client)
    conversation = await harness.client.start("Hi.", harness.spec(text_answer("Hello.")))
    async with watching(followers, "local", conversation.id) as watcher:
        async with asyncio.timeout(60):
            while not (watcher.statuses and watcher.status.trouble):
                await asyncio.sleep(0.05)
        assert "No worker has taken it up" in (watcher.status.trouble or "")
        async with harness.worker():
            await wait_for_status(watcher, "finished")
    assert watcher.status.trouble is None
    await followers.close()


async def test_a_gateway_that_ends_says_so(
    harness: ConversationHarness, followers: Followers
) -> None:
    conversation = await harness.client.start("Hi.", harness.spec(text_answer("Hello.")))
    async with watching(followers, "local", conversation.id) as watcher:
        await wait_for_status(watcher, "finished")
        await followers.close()
        async with asyncio.timeout(30):
            while watcher.error is None:
                await asyncio.sleep(0.02)
    assert watcher.error.code == "shutdown"
