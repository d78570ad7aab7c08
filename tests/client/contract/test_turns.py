"""A turn as a program follows it: its events, its text, its result."""

import asyncio

import pytest

from perdure import Agent, Conflict, MessageEvent, ModelSpec, ObservationEvent, TurnFailed
from tests.client.contract.clients import Clients
from tests.harness import text_answer, tool_call_answer


@pytest.mark.long
async def test_the_events_of_a_turn_end_with_the_turn(clients: Clients) -> None:
    harness = clients.harness
    spec = harness.spec(
        tool_call_answer(("add", {"a": 2, "b": 3})), text_answer("It is 5."), text_answer("And 6.")
    )
    async with harness.worker():
        conversation = await clients.anna.start("2 + 3?", spec)
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


@pytest.mark.long
async def test_a_conversation_found_by_its_id_has_the_turn_of_its_newest_message(
    clients: Clients,
) -> None:
    spec = clients.harness.spec(text_answer("Hello."), text_answer("Bye."))
    async with clients.harness.worker():
        started = await clients.anna.start("Hi.", spec)
        await started.result()
        await started.send("And?")
        await started.result()
        conversation = clients.anna.conversation(started.id)
        messages = [e async for e in conversation.turn() if isinstance(e, MessageEvent)]
        assert [event.source for event in messages] == ["user", "agent"]
        assert (await conversation.result()).text == "Bye."


@pytest.mark.long
async def test_a_result_waits_for_a_message_that_no_worker_has_recorded_yet(
    clients: Clients,
) -> None:
    spec = clients.harness.spec(text_answer("Hello."), text_answer("Bye."))
    async with clients.harness.worker():
        started = await clients.anna.start("Hi.", spec)
        assert (await started.result()).text == "Hello."
    await clients.anna.conversation(started.id).send("And?")
    waiting = asyncio.ensure_future(clients.anna.conversation(started.id).result())
    await asyncio.sleep(0.5)
    assert not waiting.done()
    async with clients.harness.worker():
        assert (await waiting).text == "Bye."
        assert (await started.result()).text == "Bye."


@pytest.mark.long
async def test_the_text_of_a_turn_grows_to_what_the_log_holds(clients: Clients) -> None:
    words = "one two three four five six seven eight nine ten"
    async with clients.harness.worker():
        slow = {"content": words, "chunk_delay": 0.2}
        conversation = await clients.anna.start("Count.", clients.harness.spec(slow))
        pieces = [piece async for piece in conversation.text()]
    assert "".join(pieces).strip() == words
    assert len(pieces) > 2


@pytest.mark.long
async def test_running_steps_are_seen_with_their_text(clients: Clients) -> None:
    words = "one two three four five six seven"
    slow = {"content": words, "chunk_delay": 0.3}
    async with clients.harness.worker():
        conversation = await clients.anna.start("Count.", clients.harness.spec(slow))
        texts = []
        async for steps in conversation.watch_running_steps():
            texts += [step.text for step in steps if step.kind == "llm.chat" and step.text]
            if texts and not steps:
                break
        assert texts == sorted(texts, key=len)
        assert words.startswith(texts[0].strip())
        assert (await conversation.result()).text == words


@pytest.mark.long
async def test_a_turn_that_fails_raises_its_reason(clients: Clients) -> None:
    async with clients.harness.worker():
        agent = Agent(model=ModelSpec(name="nobody/knows"), tools=[])
        conversation = await clients.anna.start("Hi.", agent)
        with pytest.raises(TurnFailed, match="model_not_found") as failed:
            await conversation.result()
    assert "perdure show" in failed.value.hint


@pytest.mark.long
async def test_a_terminated_workflow_ends_the_wait(clients: Clients) -> None:
    held = tool_call_answer(("look", {"seconds": 600}))
    async with clients.harness.worker():
        conversation = await clients.anna.start("Wait.", clients.harness.spec(held))
        waiting = asyncio.ensure_future(conversation.result())
        await clients.workflow(conversation.id).terminate()
        with pytest.raises(Conflict, match="workflow failed"):
            await waiting


@pytest.mark.long
async def test_a_cancelled_caller_leaves_no_task_behind(clients: Clients) -> None:
    held = tool_call_answer(("look", {"seconds": 600}))
    async with clients.harness.worker():
        conversation = await clients.anna.start("Wait.", clients.harness.spec(held))
        waiting = asyncio.ensure_future(conversation.result())
        async for _ in conversation.turn():
            break
        await asyncio.sleep(0.5)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert not [task for task in asyncio.all_tasks() if "perdure/client" in repr(task)]
        await conversation.close()


async def test_events_come_in_order_from_any_slot_while_they_are_written(clients: Clients) -> None:
    answers = [tool_call_answer(("add", {"a": 1, "b": n})) for n in range(5)]
    async with clients.harness.worker():
        spec = clients.harness.spec(*answers, text_answer("Done."))
        conversation = await clients.anna.start("Add.", spec)

        async def follow(after: int, count: int) -> list[int]:
            seqs: list[int] = []
            async for entry in conversation.events(after):
                seqs.append(entry.seq)
                if len(seqs) == count:
                    break
            return seqs

        results = await asyncio.gather(follow(-1, 12), follow(4, 6), follow(2, 5))
        end = (await conversation.wait_for_turn()).next_seq
        again = await follow(-1, end)
    assert [*results] == [[*range(12)], [*range(5, 11)], [*range(3, 8)]]
    assert again == [*range(end)]
