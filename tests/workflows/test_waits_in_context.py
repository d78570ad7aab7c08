"""Waits of conversations that were lost, forked, delegated, counted or are samples of a batch."""

import asyncio

import pytest

from perdure.activities.delegate import child_id
from perdure.client.fork import fork
from perdure.events.tools import ObservationEvent
from perdure.operations.reopen import reopen
from tests.harness import ConversationHarness, text_answer, tool_call_answer
from tests.workflows.batches import make_sums, spec, start_batch
from tests.workflows.test_sessions import counting, start_endless
from tests.workflows.watching import events, observations, wait_for_status

pytestmark = pytest.mark.long

TOOLS = ("wait", "ask_user", "finish")
SHORT = tool_call_answer(("wait", {"for": "3s"}))
LONG = tool_call_answer(("wait", {"signal": "paid", "for": "1w"}))
QUESTION = tool_call_answer(("ask_user", {"question": "Which colour?"}))
DONE = text_answer("done")


async def test_a_wait_whose_workflow_was_lost_ends_at_its_time_once_it_is_reopened(
    harness: ConversationHarness,
) -> None:
    async with harness.worker():
        talk = await harness.client.start("go", harness.spec(SHORT, DONE, tools=TOOLS))
        await wait_for_status(talk, "waiting")
        await talk.handle.terminate("lost")
        await asyncio.sleep(3.5)
        assert (await talk.state()).status == "waiting"
        assert (await reopen(harness.client, talk.id)).outcome == "reopened"
        await wait_for_status(talk, "finished")
    [result] = await events(talk, ObservationEvent)
    assert result.ended_by == "time"


async def test_a_fork_has_the_same_wait_and_each_ends_its_own(
    harness: ConversationHarness,
) -> None:
    async with harness.worker():
        talk = await harness.client.start("go", harness.spec(LONG, DONE, tools=TOOLS))
        before = await wait_for_status(talk, "waiting")
        forked = (await fork(harness.client, talk.id, None)).conversation
        await forked.resume()
        after = await wait_for_status(forked, "waiting")
        assert after.detail == before.detail
        assert (await forked.signal("paid", "fork")).taken
        await wait_for_status(forked, "finished")
        assert (await talk.status()).status == "waiting"
        assert (await talk.signal("paid", "parent")).taken
        await wait_for_status(talk, "finished")
    assert '"fork"' in (await observations(forked))[0]
    assert '"parent"' in (await observations(talk))[0]


async def test_a_delegate_asks_and_its_parent_gets_the_report(
    harness: ConversationHarness,
) -> None:
    delegation = tool_call_answer(("delegate", {"task": "Ask."}))
    agent = harness.spec(delegation, QUESTION, DONE, tools=("delegate", *TOOLS))
    async with harness.worker():
        parent = await harness.client.start("go", agent)
        await wait_for_status(parent, "running")
        async with asyncio.timeout(60):
            while not (pending := (await parent.status()).pending):
                await asyncio.sleep(0.05)
        child = harness.client.conversation(child_id(parent.id, pending[0].seq))
        async with asyncio.timeout(60):
            while not await child.exists():
                await asyncio.sleep(0.05)
        await wait_for_status(child, "waiting_for_answer")
        assert await child.answer("blue") == "blue"
        await wait_for_status(parent, "waiting_for_answer")  # its script is the same
        await parent.answer("red")
        await wait_for_status(parent, "finished")
    assert await observations(child) == ["The user answers: blue"]
    report, answer = await observations(parent)
    assert report.startswith(f"Conversation {child.id}: finished")
    assert answer == "The user answers: red"


async def test_a_conversation_that_waits_leaves_its_place_to_others(
    harness: ConversationHarness,
) -> None:
    counts = counting(harness, "anna")  # two at once
    async with counts.worker():
        talk = await counts.client.start("go", counts.spec(LONG, DONE, tools=TOOLS))
        await wait_for_status(talk, "waiting")
        first, second = await start_endless(counts), await start_endless(counts)
        assert (await talk.status()).status == "waiting"
        await talk.signal("paid")
        await wait_for_status(first, "idle")  # suspended, as the one that waited goes on
        await wait_for_status(talk, "finished")
        await second.interrupt()


async def test_a_sample_of_a_batch_waits_as_well(harness: ConversationHarness) -> None:
    agent = harness.spec(SHORT, text_answer("1"), tools=TOOLS)
    fields = {"model": {"name": agent.model.name}, "tools": list(TOOLS)}
    async with harness.worker():
        handle = await start_batch(harness, spec(agent=fields), make_sums(1))
        async with asyncio.timeout(60):
            progress = await handle.result()
    assert (progress.scored, progress.failed) == (1, 0)
