"""What is told to a conversation besides messages, also where its workflow has ended."""

import pytest

from agent.spec import Confirmation
from client.client import Client
from client.conversation import Conversation
from client.errors import Conflict, Invalid, NotFound
from client.ids import new_conversation_id
from tests.house import House, calls, kinds, says

ASKS = Confirmation(policy="always")


async def waiting(house: House, *commands: str) -> Conversation:
    """A conversation whose calls wait for a person."""
    answer = calls(*(("terminal", {"command": one}) for one in commands))
    spec = house.spec(answer, says("Done."), tools=("terminal",), confirmation=ASKS)
    conversation = await house.client.start("Go.", spec)
    state = await conversation.finished()
    assert state.status == "waiting_for_confirmation"
    return conversation


async def test_calls_are_accepted_and_rejected_by_name_alone(house: House) -> None:
    async with house.worker():
        conversation = await waiting(house, "echo one", "echo two")
        one, two = (call.tool_call_id for call in (await conversation.status()).pending)
        with pytest.raises(Invalid, match=r"^Name the calls that are meant"):
            await conversation.respond(True)
        with pytest.raises(Invalid, match=rf"^No call 'three' waits.*{one}, {two}\.$"):
            await conversation.respond(True, ["three"])
        assert await conversation.respond(False, [two], reason="Once is enough.") == [two]
        assert await conversation.respond(True, through=(await conversation.state()).next_seq)
        state = await conversation.finished(after=(await conversation.log.end()) - 2)
        assert state.status == "finished"
    entries = await conversation.log.read(0, await conversation.log.end())
    assert kinds(entries).count("ObservationEvent") == 1
    [rejected] = [one for one in entries if one.event.kind == "UserRejectObservation"]
    assert "Once is enough." in rejected.body.decode()


async def test_a_conversation_whose_workflow_is_gone_is_opened_again(house: House) -> None:
    async with house.worker():
        conversation = await waiting(house, "echo one")
        [call] = (await conversation.status()).pending
        await conversation.handle.terminate()
        recorded = await conversation.configure({"limits": {"max_iterations": 7}})
        await conversation.handle.terminate()
        await conversation.note(title="Seven", state={"mood": "good", "user:tone": "dry"})
        assert await conversation.values() == {"mood": "good", "user:tone": "dry"}
        await conversation.handle.terminate()
        assert await conversation.respond(True, [call.tool_call_id]) == [call.tool_call_id]
        state = await conversation.finished(after=recorded.seq)
        assert (state.status, state.title) == ("finished", "Seven")
        assert state.spec is not None
        assert state.spec.limits.max_iterations == 7


async def test_an_interrupt_stops_what_runs(house: House) -> None:
    async with house.worker():
        spec = house.spec({"content": "Never said.", "delay": 60.0})
        conversation = await house.client.start("Go.", spec)
        async for steps in conversation.live():
            if any(one.kind == "llm.chat" for one in steps):
                break
        await conversation.interrupt()
        state = await conversation.finished()
        assert (state.status, state.reason) == ("idle", "interrupted by the user")


async def test_what_cannot_be_is_told_in_a_sentence(house: House) -> None:
    async with house.worker():
        conversation = await house.client.start("Go.", house.spec(says("Done.")))
        await conversation.finished()
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
    nobody = house.client.conversation(new_conversation_id())
    with pytest.raises(NotFound, match="There is no conversation"):
        await nobody.configure({"model": "m"})
    with pytest.raises(NotFound, match="There is no conversation"):
        await nobody.interrupt()


async def test_a_message_may_bring_images(house: House) -> None:
    client: Client = house.client
    with pytest.raises(Invalid, match="An image is an http address"):
        await client.start("Look.", house.spec(says("I see.")), images=["cat.png"])
    async with house.worker():
        spec = house.spec(says("I see."), says("Again."))
        conversation = await client.start("Look.", spec, images=["https://example.org/cat.png"])
        await conversation.finished()
        await conversation.send("", "two", images=["https://example.org/dog.png"])
        await conversation.finished("two")
    entries = await conversation.log.read(0, await conversation.log.end())
    shown = b"".join(one.body for one in entries if one.event.kind == "MessageEvent")
    assert b"cat.png" in shown
    assert b"dog.png" in shown
