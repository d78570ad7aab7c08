"""The control of a conversation, also after its workflow has ended."""

import pytest

from perdure.agent.policies import Confirmation, Limits
from perdure.agent.spec import Agent, ModelSpec
from perdure.client.ids import new_conversation_id
from perdure.client.protocol import ConversationHandle
from perdure.errors import Conflict, Forbidden, Invalid, NotFound
from tests.client.contract.clients import Clients
from tests.harness import event_kinds, text_answer, tool_call_answer

ALWAYS_CONFIRM = Confirmation(policy="always")


async def start_waiting(clients: Clients, *commands: str) -> ConversationHandle:
    """Start a conversation whose calls wait for confirmation."""
    answer = tool_call_answer(*(("terminal", {"command": command}) for command in commands))
    spec = clients.harness.spec(
        answer, text_answer("Done."), tools=("terminal",), confirmation=ALWAYS_CONFIRM
    )
    conversation = await clients.anna.start("Go.", spec)
    state = await conversation.wait_for_turn()
    assert state.status == "waiting_for_confirmation"
    return conversation


async def test_calls_are_accepted_and_rejected_by_call_id(clients: Clients) -> None:
    async with clients.harness.worker():
        conversation = await start_waiting(clients, "echo one", "echo two")
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


async def test_a_message_that_is_only_recorded_waits_for_a_resumption(clients: Clients) -> None:
    async with clients.harness.worker():
        spec = clients.harness.spec(text_answer("Hello."), text_answer("Both."))
        conversation = await clients.anna.start("Hi.", spec)
        await conversation.wait_for_turn()
        recorded = await conversation.submit("One.", "one", run=False)
        await conversation.send("Two.", "two", run=False)
        state = await conversation.wait_for_turn("two", recorded.seq)
        assert (state.status, state.iterations) == ("idle", 0)
        await conversation.resume()
        state = await conversation.wait_for_turn(after=state.next_seq - 1)
        assert (state.status, state.iterations) == ("finished", 1)
    entries = await conversation.log.read(0, await conversation.log.end())
    said = [entry.body.decode() for entry in entries if entry.event.kind == "MessageEvent"]
    texts = ("Hi.", "Hello.", "One.", "Two.", "Both.")
    assert all(text in body for text, body in zip(texts, said, strict=True))


async def test_an_agent_can_rest_after_a_rejection(clients: Clients) -> None:
    async with clients.harness.worker():
        conversation = await start_waiting(clients, "echo one")
        [call] = (await conversation.status()).pending
        await conversation.respond(False, [call.tool_call_id], reason="No.", run=False)
        assert (await conversation.status()).status == "idle"
        await conversation.resume()
        state = await conversation.wait_for_turn(after=(await conversation.log.end()) - 1)
        assert (state.status, state.turn) == ("finished", 1)


async def test_a_recorded_message_takes_the_place_of_calls_that_wait(clients: Clients) -> None:
    async with clients.harness.worker():
        conversation = await start_waiting(clients, "echo one")
        await conversation.submit("Better not.", "no", run=False)
        status = await conversation.status()
        assert (status.status, status.pending) == ("idle", ())
        await conversation.resume()
        state = await conversation.wait_for_turn(after=(await conversation.log.end()) - 1)
        assert (state.status, state.turn) == ("finished", 2)


async def test_updates_restart_a_terminated_workflow(clients: Clients) -> None:
    async with clients.harness.worker():
        conversation = await start_waiting(clients, "echo one")
        [call] = (await conversation.status()).pending
        await clients.workflow(conversation.id).terminate()
        recorded = await conversation.configure({"limits": {"max_iterations": 7}})
        await clients.workflow(conversation.id).terminate()
        await conversation.note(title="Seven", state={"mood": "good", "user:tone": "dry"})
        assert await conversation.values() == {"mood": "good", "user:tone": "dry"}
        await clients.workflow(conversation.id).terminate()
        assert await conversation.respond(True, [call.tool_call_id]) == [call.tool_call_id]
        state = await conversation.wait_for_turn(after=recorded.seq)
        assert (state.status, state.title) == ("finished", "Seven")
        assert state.spec is not None
        assert state.spec.limits.max_iterations == 7


async def test_an_interrupt_stops_a_running_step(clients: Clients) -> None:
    async with clients.harness.worker():
        spec = clients.harness.spec(
            text_answer("Hello."), {"content": "Never said to its end.", "chunk_delay": 60.0}
        )
        conversation = await clients.anna.start("Hi.", spec)
        assert (await conversation.result()).text == "Hello."
        await conversation.send("Go.")
        async for steps in conversation.watch_running_steps():
            if any(step.kind == "llm.chat" for step in steps):
                break
        await conversation.interrupt()
        result = await conversation.result()
        assert (result.status, result.reason) == ("idle", "interrupted by the user")
        assert "Hello" not in result.text, "the answer of the turn before is not this one's"


async def test_impossible_requests_are_refused_with_a_reason(clients: Clients) -> None:
    async with clients.harness.worker():
        conversation = await clients.anna.start("Go.", clients.harness.spec(text_answer("Done.")))
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
    unknown = clients.anna.conversation(new_conversation_id())
    with pytest.raises(NotFound, match="There is no conversation"):
        await unknown.configure({"model": "m"})
    with pytest.raises(NotFound, match="There is no conversation"):
        await unknown.interrupt()


async def test_a_message_may_bring_images(clients: Clients) -> None:
    client = clients.anna
    with pytest.raises(Invalid, match=r"The image cat\.png cannot be read"):
        await client.start("Look.", clients.harness.spec(text_answer("I see.")), images=["cat.png"])
    async with clients.harness.worker():
        spec = clients.harness.spec(text_answer("I see."), text_answer("Again."))
        conversation = await client.start("Look.", spec, images=["https://example.org/cat.png"])
        await conversation.wait_for_turn()
        await conversation.send("", "two", images=["https://example.org/dog.png"])
        await conversation.wait_for_turn("two")
    entries = await conversation.log.read(0, await conversation.log.end())
    bodies = b"".join(entry.body for entry in entries if entry.event.kind == "MessageEvent")
    assert b"cat.png" in bodies
    assert b"dog.png" in bodies


@pytest.mark.long
async def test_a_budget_that_no_price_can_keep_is_refused_before_there_is_a_conversation(
    clients: Clients,
) -> None:
    dear, budget = ModelSpec(name="openai/a-model-of-mine"), Limits(max_budget=1.0)
    name = new_conversation_id()
    with pytest.raises(Invalid, match=r"the price of openai/a-model-of-mine is not known") as error:
        await clients.anna.start("Go.", Agent(model=dear, limits=budget), name)
    assert "ModelSpec(name=…, input_price=…, output_price=…)" in str(error.value.hint)
    assert not await clients.anna.conversation(name).exists()
    priced = dear.model_copy(update={"input_price": 1.0, "output_price": 2.0})
    await clients.anna.start("Go.", Agent(model=priced, limits=budget), name)
    assert await clients.anna.conversation(name).exists()


async def test_a_shared_value_that_another_has_changed_is_not_replaced(clients: Clients) -> None:
    async with clients.harness.worker():
        conversation = await clients.anna.start("Go.", clients.harness.spec(text_answer("Done.")))
        await conversation.note(state={"user:pet": "cat", "mood": "good"})
        read = await conversation.read_values()
        assert read.values == {"user:pet": "cat", "mood": "good"}
        assert list(read.versions) == ["user:pet"]
        await conversation.note(state={"user:pet": "dog"}, versions=read.versions)
        with pytest.raises(Conflict, match=r'user:pet was changed .* now "dog"'):
            await conversation.note(state={"user:pet": "fish"}, versions=read.versions)
        with pytest.raises(Invalid, match=r"`versions` names 'other'"):
            await conversation.note(state={"user:pet": 1}, versions={"other": "1"})
        with pytest.raises(Forbidden, match="may not change values of app:"):
            await conversation.note(state={"app:motd": "hi"})
        with pytest.raises(Invalid, match="cannot be shared"):
            await conversation.note(state={"user:a/b": 1})
        assert await conversation.values() == {"user:pet": "dog", "mood": "good"}
        theirs = clients.ben.conversation(conversation.id)
        with pytest.raises(NotFound):
            await theirs.note(state={"user:pet": "snake"})
