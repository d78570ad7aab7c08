"""The patience with an outage of Temporal."""

import asyncio

import pytest

from perdure import Conflict, NotFound, Unreachable
from perdure.client.ids import new_conversation_id
from perdure.client.outage import check_workflow
from perdure.client.patience import Outage
from perdure.events.content import Message, TextContent
from perdure.events.entry import Origin
from perdure.events.messages import MessageEvent
from tests.harness import ConversationHarness, text_answer

SILENT = Unreachable("Temporal does not answer.")


async def test_a_short_outage_is_borne() -> None:
    outage = Outage(patience=60)
    for _ in range(3):
        outage.bear(SILENT, "some-id")


async def test_a_long_outage_is_an_error_that_says_how_to_come_back() -> None:
    outage = Outage(patience=0.2)
    outage.bear(SILENT, "some-id")
    await asyncio.sleep(0.3)
    with pytest.raises(Unreachable, match=r"has not answered for 0\.2 s") as failure:
        outage.bear(SILENT, "some-id")
    assert "`perdure watch some-id`" in failure.value.hint


async def test_an_outage_that_ended_does_not_count_for_the_next() -> None:
    outage = Outage(patience=0.2)
    outage.bear(SILENT, "some-id")
    await asyncio.sleep(0.3)
    outage.end()
    outage.bear(SILENT, "some-id")


async def test_a_fork_that_nobody_has_started_has_no_news(harness: ConversationHarness) -> None:
    async with harness.worker():
        conversation = await harness.client.start("Hi.", harness.spec(text_answer("Hello.")))
        await conversation.result()
        fork = await harness.client.fork(conversation.id)
        workflow = fork.conversation.workflow
        assert await workflow.describe() is None, "else this tries nothing"
        assert not await workflow.has_news(fork.state.next_seq)
        assert (await fork.conversation.result()).text == "Hello."


async def test_a_conversation_at_work_that_temporal_does_not_know_is_a_conflict(
    harness: ConversationHarness,
) -> None:
    conversation = harness.client.conversation(new_conversation_id())
    said = Message(role="user", content=(TextContent(text="Hi."),))
    message = MessageEvent(timestamp="2026-11-26T00:00:00.000000", source="user", llm_message=said)
    await conversation.log.append([message], base=0, origin=Origin(run="run", activity="1"))
    with pytest.raises(Conflict, match="does not know the workflow") as refused:
        await check_workflow(conversation.workflow, Outage(patience=0.2))
    assert f"`perdure reopen {conversation.id}`" in refused.value.hint


async def test_nothing_is_waited_for_where_no_conversation_is(harness: ConversationHarness) -> None:
    with pytest.raises(NotFound):
        await harness.client.conversation(new_conversation_id()).result()
