"""Workflows that nobody can replay are replaced, and nothing that they were sent is lost."""

import asyncio
from typing import Any

import pytest

from perdure.activities.delegate import child_id
from perdure.agent.policies import Confirmation
from perdure.client.conversation import Conversation
from perdure.events.messages import MessageEvent
from perdure.operations.reopen import reopen
from perdure.operations.replacement import replace_workflow
from perdure.operations.watchdog import Watchdog
from perdure.storage.log.state import read_state
from perdure.storage.log.verify import verify
from tests.client.strangers import as_user
from tests.harness import ConversationHarness, text_answer, tool_call_answer
from tests.workflows.other_code import NondeterministicConversation
from tests.workflows.troubles import TROUBLE_TIMEOUT, other_worker, wait_for_trouble
from tests.workflows.watching import wait_for_growth, wait_for_status

pytestmark = pytest.mark.long

TIMER_EVENT = 5
"""The history event of a timer that the other code begins with, behind start, signal and a task."""

ALWAYS = Confirmation(policy="always")
ASK = tool_call_answer(("charge", {"amount": 5, "seconds": 0}))


async def run_id_of(talk: Conversation) -> str:
    described = await talk.workflow.describe()
    assert described is not None
    return described.workflow_execution_info.execution.run_id


async def user_texts(talk: Conversation) -> list[str]:
    events = await talk.event_log.read()
    said = [it for it in events if isinstance(it, MessageEvent) and it.source == "user"]
    return [getattr(part, "text", "") for it in said for part in it.llm_message.content]


async def start_waiting(harness: ConversationHarness, *answers: dict[str, Any]) -> Conversation:
    """Start a conversation that waits for an approval, with a good worker, which then ends."""
    async with harness.worker():
        spec = harness.spec(ASK, *answers, confirmation=ALWAYS)
        talk = await harness.client.start("hi", spec)
        await wait_for_status(talk, "waiting_for_confirmation")
    return talk


async def test_what_a_replaced_workflow_was_sent_is_recorded_once_and_in_order(
    harness: ConversationHarness,
) -> None:
    anna = ConversationHarness(as_user(harness, "anna").client, harness.resources, harness.folder)
    talk = await start_waiting(anna, text_answer("two"), text_answer("three"))
    before = await talk.event_log.read()
    async with other_worker(harness, NondeterministicConversation):
        await talk.send("with an id", message_id="m")
        await talk.handle.signal("send_message", "without one")
        await talk.send("with an id", message_id="m")
        await talk.handle.signal("send_signal", {"name": "deploy", "data": 1})
        await wait_for_trouble(talk, "does not fit its history", "`perdure reopen`")
    old = await run_id_of(talk)
    assert await replace_workflow(harness.client, "anna", talk.id)
    assert await run_id_of(talk) != old
    assert not await replace_workflow(harness.client, "anna", talk.id)
    async with harness.worker():
        state = await talk.wait_for_turn("m")
        await wait_for_status(talk, "finished")
        state = await talk.state()
    assert await user_texts(talk) == ["hi", "with an id", "without one"]
    assert [signal.name for signal in state.signals] == ["deploy"]
    after = await talk.event_log.read()
    assert after[: len(before)] == before
    actors = {getattr(event, "actor", None) for event in after if isinstance(event, MessageEvent)}
    assert "anna" in actors
    assert [it async for it in verify(talk.log) if it.kind != "note"] == []


async def test_a_pause_that_nobody_has_handled_outlives_the_workflow(
    harness: ConversationHarness,
) -> None:
    talk = await start_waiting(harness, text_answer("two"))
    async with other_worker(harness, NondeterministicConversation):
        await talk.send("go on", message_id="m")
        await talk.pause()
        await wait_for_trouble(talk, "does not fit its history")
    result = await reopen(harness.client, talk.id)
    assert result.outcome == "reopened"
    assert "nobody could replay" in (result.reason or "")
    async with harness.worker():
        await wait_for_status(talk, "paused")
        await talk.resume()
        await talk.wait_for_turn("m")
    assert await user_texts(talk) == ["hi", "go on"]


async def test_the_watchdog_replaces_after_a_while_and_never_where_the_settings_say_so(
    harness: ConversationHarness, caplog: pytest.LogCaptureFixture
) -> None:
    talk = await start_waiting(harness, text_answer("two"))
    old = await run_id_of(talk)
    async with other_worker(harness, NondeterministicConversation):
        await talk.send("go on", message_id="m")
        await wait_for_trouble(talk, "does not fit its history")
        async with Watchdog(harness.client, 0.1, replace_after=0).watch():
            await asyncio.sleep(1)
            assert await run_id_of(talk) == old
    async with Watchdog(harness.client, 0.1, replace_after=0.5).watch():
        async with asyncio.timeout(TROUBLE_TIMEOUT):
            while await run_id_of(talk) == old:
                await asyncio.sleep(0.05)
    async with harness.worker():
        await talk.wait_for_turn("m")
    assert await user_texts(talk) == ["hi", "go on"]
    assert [it.message for it in caplog.records if "is replaced" in it.message]


async def test_a_conversation_that_has_not_begun_begins(harness: ConversationHarness) -> None:
    async with other_worker(harness, NondeterministicConversation):
        talk = await harness.client.start("hi", harness.spec(text_answer("one")))
        async with asyncio.timeout(TROUBLE_TIMEOUT):
            while (described := await talk.workflow.describe()) is None or (
                described.workflow_execution_info.history_length < TIMER_EVENT
            ):
                await asyncio.sleep(0.05)
    async with harness.worker():
        await talk.handle.signal("send_message", {"text": "go on", "message_id": "m"})
        await wait_for_trouble(talk, "does not fit its history")
        assert await talk.log.end() == 0
        assert await replace_workflow(harness.client, "local", talk.id)
        assert (await talk.wait_for_turn("m")).status == "finished"
    assert await user_texts(talk) == ["hi", "go on"]


async def test_a_conversation_that_another_one_waits_for_is_left_to_it(
    harness: ConversationHarness,
) -> None:
    client = harness.client
    async with harness.worker():
        delegate = tool_call_answer(("delegate", {"task": "charge"}))
        thinking = {"content": "later", "delay": 600}
        spec = harness.spec(delegate, thinking, tools=("delegate",))
        parent = await client.start("hi", spec)
        async with asyncio.timeout(60):
            while not (pending := (await read_state(parent.log)).pending):
                await asyncio.sleep(0.02)
        [action] = pending
        child = client.conversation(child_id(parent.id, action.seq))
        await wait_for_growth(child, "llm.chat")
    async with other_worker(harness, NondeterministicConversation):
        await child.send("never mind", message_id="m")
        await wait_for_trouble(child, "does not fit its history")
    old = await run_id_of(child)
    assert not await replace_workflow(client, "local", child.id)
    assert await run_id_of(child) == old
    for talk in (parent, child):
        await talk.handle.terminate()


async def test_a_workflow_that_goes_on_is_not_replaced(harness: ConversationHarness) -> None:
    async with harness.worker():
        spec = harness.spec(ASK, text_answer("two"), confirmation=ALWAYS)
        talk = await harness.client.start("hi", spec)
        await wait_for_status(talk, "waiting_for_confirmation")
        assert not await replace_workflow(harness.client, "local", talk.id)
        assert (await reopen(harness.client, talk.id)).outcome == "running"
    await talk.send("never mind", message_id="m")  # nobody handles it
    assert not await replace_workflow(harness.client, "local", talk.id)
    await talk.handle.terminate()
