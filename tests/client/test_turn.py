"""A turn as a program follows it: its events, its text, its result."""

import asyncio

import pytest

from perdure import Agent, Conflict, MessageEvent, ModelSpec, ObservationEvent, TurnFailed
from perdure.client.turn import find_growth
from tests.harness import ConversationHarness, text_answer, tool_call_answer


async def test_the_events_of_a_turn_end_with_the_turn(harness: ConversationHarness) -> None:
    spec = harness.spec(
        tool_call_answer(("add", {"a": 2, "b": 3})), text_answer("It is 5."), text_answer("And 6.")
    )
    async with harness.worker():
        conversation = await harness.client.start("2 + 3?", spec)
        first = [event async for event in conversation.turn()]
        result = await conversation.result()
        await conversation.send("3 + 3?")
        second = [event async for event in conversation.turn()]
        later = await conversation.result()
    assert any(isinstance(event, ObservationEvent) for event in first)
    assert (result.status, result.text, result.conversation_id) == (
        "finished",
        "It is 5.",
        conversation.id,
    )
    assert [event.source for event in second if isinstance(event, MessageEvent)] == [
        "user",
        "agent",
    ]
    assert later.text == "And 6."
    assert later.usage.prompt_tokens >= result.usage.prompt_tokens


async def test_a_conversation_found_by_its_id_has_the_turn_of_its_newest_message(
    harness: ConversationHarness,
) -> None:
    async with harness.worker():
        started = await harness.client.start(
            "Hi.", harness.spec(text_answer("Hello."), text_answer("Bye."))
        )
        await started.result()
        await started.send("And?")
        await started.result()
        conversation = harness.client.conversation(started.id)
        messages = [e async for e in conversation.turn() if isinstance(e, MessageEvent)]
        assert [event.source for event in messages] == ["user", "agent"]
        assert (await conversation.result()).text == "Bye."


async def test_a_result_waits_for_a_message_that_no_worker_has_recorded_yet(
    harness: ConversationHarness,
) -> None:
    async with harness.worker():
        started = await harness.client.start(
            "Hi.", harness.spec(text_answer("Hello."), text_answer("Bye."))
        )
        assert (await started.result()).text == "Hello."
    await harness.client.conversation(started.id).send("And?")
    waiting = asyncio.ensure_future(harness.client.conversation(started.id).result())
    await asyncio.sleep(0.5)
    assert not waiting.done()
    async with harness.worker():
        assert (await waiting).text == "Bye."
        assert (await started.result()).text == "Bye."


async def test_the_text_of_a_turn_grows_to_what_the_log_holds(harness: ConversationHarness) -> None:
    words = "one two three four five six seven eight nine ten"
    async with harness.worker():
        slow = {"content": words, "chunk_delay": 0.1}
        conversation = await harness.client.start("Count.", harness.spec(slow))
        pieces = [piece async for piece in conversation.text()]
    assert "".join(pieces).strip() == words
    assert len(pieces) > 2


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


async def test_a_turn_that_fails_raises_its_reason(harness: ConversationHarness) -> None:
    async with harness.worker():
        agent = Agent(model=ModelSpec(name="nobody/knows"), tools=[])
        conversation = await harness.client.start("Hi.", agent)
        with pytest.raises(TurnFailed, match="model_not_found") as failed:
            await conversation.result()
    assert "perdure show" in failed.value.hint


async def test_a_terminated_workflow_ends_the_wait(harness: ConversationHarness) -> None:
    held = tool_call_answer(("look", {"seconds": 600}))
    async with harness.worker():
        conversation = await harness.client.start("Wait.", harness.spec(held))
        waiting = asyncio.ensure_future(conversation.result())
        await conversation.handle.terminate()
        with pytest.raises(Conflict, match="workflow failed"):
            await waiting


async def test_a_cancelled_caller_leaves_no_task_behind(harness: ConversationHarness) -> None:
    held = tool_call_answer(("look", {"seconds": 600}))
    async with harness.worker():
        conversation = await harness.client.start("Wait.", harness.spec(held))
        waiting = asyncio.ensure_future(conversation.result())
        async for _ in conversation.turn():
            break
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert not [task for task in asyncio.all_tasks() if "perdure/client" in repr(task)]
        await conversation.close()
