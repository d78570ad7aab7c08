"""Clients that follow a conversation."""

import asyncio

import pytest

from perdure.gateway.following.followers import Followers
from reliability.following.watcher import wait_for_status, watching
from tests.harness import ConversationHarness, text_answer, tool_call_answer

WORDS = "one two three four five six seven eight nine ten"


async def test_a_client_gets_each_slot_once_and_in_order(
    harness: ConversationHarness, followers: Followers
) -> None:
    spec = harness.spec(tool_call_answer(("add", {"a": 2, "b": 3})), text_answer("It is 5."))
    conversation = await harness.client.start("2 + 3?", spec)
    async with watching(followers, "local", conversation.id) as watcher:
        await wait_for_status(watcher, "finished")
        entries = await conversation.log.read(0, 1000)
    assert list(watcher.entries) == [entry.seq for entry in entries]
    assert [entry["id"] for entry in watcher.entries.values()] == [e.event.id for e in entries]
    assert [frame.kind for frame in watcher.frames][:2] == ["sync", "status"]


@pytest.mark.long
async def test_a_text_grows_to_what_its_event_says(
    harness: ConversationHarness, followers: Followers
) -> None:
    conversation = await harness.client.start(
        "Count.", harness.spec({"content": WORDS, "chunk_delay": 0.15})
    )
    async with watching(followers, "local", conversation.id) as watcher:
        await wait_for_status(watcher, "finished")
    assert [frame.kind for frame in watcher.frames].count("delta") > 3
    assert watcher.finished_texts == [(WORDS, WORDS)]
    assert not watcher.texts


@pytest.mark.long
async def test_a_client_that_attaches_in_the_middle_gets_the_text_so_far(
    harness: ConversationHarness, followers: Followers
) -> None:
    conversation = await harness.client.start(
        "Count.", harness.spec({"content": WORDS, "chunk_delay": 0.15})
    )
    async with watching(followers, "local", conversation.id) as first:
        while not first.texts:
            await asyncio.sleep(0.02)
        async with watching(followers, "local", conversation.id, first.next_seq - 1) as second:
            await wait_for_status(second, "finished")
    deltas = [frame for frame in second.frames if frame.kind == "delta"]
    assert (deltas[0].offset, WORDS.startswith(deltas[0].text)) == (0, True)
    assert second.finished_texts == [(WORDS, WORDS)]
    assert [*first.entries, *second.entries] == sorted([*first.entries, *second.entries])


@pytest.mark.long
async def test_a_conversation_whose_workflow_has_ended_is_followed_when_it_goes_on(
    harness: ConversationHarness, followers: Followers
) -> None:
    spec = harness.spec(text_answer("Hello."), text_answer("Bye."), finished_timeout=0.2)
    conversation = await harness.client.start("Hi.", spec)
    await conversation.handle.result()
    async with watching(followers, "local", conversation.id) as watcher:
        await wait_for_status(watcher, "finished")
        seen = watcher.next_seq
        await conversation.send("And?")
        await wait_for_status(watcher, "finished", after=seen + 1)
    assert watcher.next_seq == await conversation.log.end()


@pytest.mark.long
async def test_a_run_that_continues_as_new_is_followed(
    harness: ConversationHarness, followers: Followers
) -> None:
    calls = [tool_call_answer(("add", {"a": 2, "b": nth})) for nth in range(70)]
    conversation = await harness.client.start("Add.", harness.spec(*calls, text_answer("Done.")))
    async with watching(followers, "local", conversation.id) as watcher:
        await wait_for_status(watcher, "finished")
    runs = {entry["origin"]["run"] for entry in watcher.entries.values()}
    assert len(runs) > 1
