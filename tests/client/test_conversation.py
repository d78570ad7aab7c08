"""The control of a conversation, also after its workflow has ended."""

import pytest

from perdure.agent.policies import Confirmation, Limits
from perdure.agent.spec import Agent, ModelSpec
from perdure.client.client import Client
from perdure.client.conversation import Conversation
from perdure.client.ids import new_conversation_id
from perdure.errors import Conflict, Invalid, NotFound
from tests.harness import ConversationHarness, event_kinds, text_answer, tool_call_answer

ALWAYS_CONFIRM = Confirmation(policy="always")


async def start_waiting(harness: ConversationHarness, *commands: str) -> Conversation:
    """Start a conversation whose calls wait for confirmation."""
    answer = tool_call_answer(*(("terminal", {"command": command}) for command in commands))
    spec = harness.spec(
        answer, text_answer("Done."), tools=("terminal",), confirmation=ALWAYS_CONFIRM
    )
    conversation = await harness.client.start("Go.", spec)
    state = await conversation.wait_for_turn()
    assert state.status == "waiting_for_confirmation"
    return conversation


async def test_calls_are_accepted_and_rejected_by_call_id(harness: ConversationHarness) -> None:
    async with harness.worker():
        conversation = await start_waiting(harness, "echo one", "echo two")
        first_id, second_id = (call.tool_call_id for call in (await conversation.status()).pending)
        with pytest.raises(Invalid, match=r"^Name the calls that are meant"):
            await conversation.respond(True)
        with pytest.raises(Invalid, match=rf"^No call 'three' waits.*{first_id}, {second_id}\.$"):
            await conversation.respond(True, ["three"])
        assert await conversation.respond(False, [second_id], reason="Once is enough.") == [
            second_id
        ]
        assert await conversation.respond(True, through=(await conversation.state()).next_seq)
        state = await conversation.wait_for_turn(after=(await conversation.log.end()) - 2)
        assert state.status == "finished"
    entries = await conversation.log.read(0, await conversation.log.end())
    assert event_kinds(entries).count("ObservationEvent") == 1
    [rejected] = [entry for entry in entries if entry.event.kind == "UserRejectObservation"]
    assert "Once is enough." in rejected.body.decode()


async def test_updates_restart_a_terminated_workflow(harness: ConversationHarness) -> None:
    async with harness.worker():
        conversation = await start_waiting(harness, "echo one")
        [call] = (await conversation.status()).pending
        await conversation.handle.terminate()
        recorded = await conversation.configure({"limits": {"max_iterations": 7}})
        await conversation.handle.terminate()
        await conversation.note(title="Seven", state={"mood": "good", "user:tone": "dry"})
        assert await conversation.values() == {"mood": "good", "user:tone": "dry"}
        await conversation.handle.terminate()
        assert await conversation.respond(True, [call.tool_call_id]) == [call.tool_call_id]
        state = await conversation.wait_for_turn(after=recorded.seq)
        assert (state.status, state.title) == ("finished", "Seven")
        assert state.spec is not None
        assert state.spec.limits.max_iterations == 7


async def test_an_interrupt_stops_a_running_step(harness: ConversationHarness) -> None:
    async with harness.worker():
        spec = harness.spec(text_answer("Hello."), {"content": "Never said.", "delay": 60.0})
        conversation = await harness.client.start("Hi.", spec)
        assert (await conversation.result()).text == "Hello."
        await conversation.send("Go.")
        async for steps in conversation.watch_running_steps():
            if any(step.kind == "llm.chat" for step in steps):
                break
        await conversation.interrupt()
        result = await conversation.result()
        assert (result.status, result.reason) == ("idle", "interrupted by the user")
        assert result.text == "", "the answer of the turn before is not this one's"


async def test_impossible_requests_are_refused_with_a_reason(harness: ConversationHarness) -> None:
    async with harness.worker():
        conversation = await harness.client.start("Go.", harness.spec(text_answer("Done.")))
        await conversation.wait_for_turn()
        with pytest.raises(Invalid, match=r"^'tools' cannot be changed"):
            await conversation.configure({"tools": ["terminal"]})
        with pytest.raises(Invalid, match="There is nothing to note"):
            await conversation.note()
        await conversation.close()
        async for entry in conversation.events():
            if b'"closed"' in entry.body:
                break
    with pytest.raises(Conflict, match="is closed"):
        await conversation.respond(True, ["one"])
    with pytest.raises(Conflict, match="is closed"):
        await conversation.condense()
    unknown = harness.client.conversation(new_conversation_id())
    with pytest.raises(NotFound, match="There is no conversation"):
        await unknown.configure({"model": "m"})
    with pytest.raises(NotFound, match="There is no conversation"):
        await unknown.interrupt()


async def test_a_message_may_bring_images(harness: ConversationHarness) -> None:
    client: Client = harness.client
    with pytest.raises(Invalid, match=r"The image cat\.png cannot be read"):
        await client.start("Look.", harness.spec(text_answer("I see.")), images=["cat.png"])
    async with harness.worker():
        spec = harness.spec(text_answer("I see."), text_answer("Again."))
        conversation = await client.start("Look.", spec, images=["https://example.org/cat.png"])
        await conversation.wait_for_turn()
        await conversation.send("", "two", images=["https://example.org/dog.png"])
        await conversation.wait_for_turn("two")
    entries = await conversation.log.read(0, await conversation.log.end())
    bodies = b"".join(entry.body for entry in entries if entry.event.kind == "MessageEvent")
    assert b"cat.png" in bodies
    assert b"dog.png" in bodies


async def test_a_budget_that_no_price_can_keep_is_refused_before_there_is_a_conversation(
    harness: ConversationHarness,
) -> None:
    dear, budget = ModelSpec(name="openai/a-model-of-mine"), Limits(max_budget=1.0)
    name = new_conversation_id()
    with pytest.raises(Invalid, match=r"the price of openai/a-model-of-mine is not known") as error:
        await harness.client.start("Go.", Agent(model=dear, limits=budget), name)
    assert "ModelSpec(name=…, input_price=…, output_price=…)" in str(error.value.hint)
    assert not await harness.client.conversation(name).workflow.is_running()
    priced = dear.model_copy(update={"input_price": 1.0, "output_price": 2.0})
    await harness.client.start("Go.", Agent(model=priced, limits=budget), name)
    assert await harness.client.conversation(name).workflow.is_running()
