"""A question beside a conversation, on a real server: answered, and nothing of it kept."""

import pytest

from agent.spec import ModelSpec
from client.ask import ask
from client.errors import Conflict, Invalid, NotFound, TimedOut
from client.ids import new_conversation_id
from storage.state import state_of
from tests.house import House, calls, says

ONE_STEP = (calls(("add", {"a": 2, "b": 3})), says("five"))


async def kept(house: House) -> dict[str, bytes | None]:
    """Every object of the store."""
    keys = await house.client.store.list("")
    return {key: await house.client.store.read(key) for key in keys}


async def test_an_answer_leaves_no_trace_at_rest_and_after_the_end(house: House) -> None:
    async with house.worker():
        talk = await house.client.start("2 + 3?", house.spec(*ONE_STEP))
        await talk.finished()
        await talk.close()
        await talk.handle.result()
        before = await kept(house)
        answer = await ask(house.client, talk.id, "What is it about?")
        again = await ask(house.client, talk.id, "And now?")
        assert await kept(house) == before

    assert answer.text == "ANSWER of 6 messages"
    assert answer.usage.purpose == "ask"
    assert again.text == answer.text, "the first question was not kept"


async def test_it_is_answered_while_the_agent_works(house: House) -> None:
    spec = house.spec(calls(("look", {"seconds": 60})), says("done"))
    async with house.worker():
        talk = await house.client.start("go", spec)
        async for entry in talk.log.tail():
            if entry.event.kind == "ActionEvent":
                break
        before = await kept(house)
        answer = await ask(house.client, talk.id, "What are you doing?")
        assert await kept(house) == before
        assert (await state_of(talk.log)).status == "running"
        await talk.interrupt()
        await talk.finished()

    assert answer.text == "ANSWER of 3 messages", "a call without its result is not shown"


async def test_what_cannot_be_answered_is_told_with_a_sentence(house: House) -> None:
    nobody = new_conversation_id()
    with pytest.raises(Invalid, match="empty"):
        await ask(house.client, nobody, " ")
    with pytest.raises(NotFound, match=nobody):
        await ask(house.client, nobody, "Hello?")
    script = house.folder / "short.json"
    script.write_text('{"answers": ["one"], "max_messages": 3}')
    spec = house.spec(says("one"))
    spec = spec.model_copy(update={"model": ModelSpec(name=f"scripted:{script}")})
    async with house.worker():
        talk = await house.client.start("hi", spec)
        await talk.finished()
        with pytest.raises(Conflict, match="too long"):
            await ask(house.client, talk.id, "Hello?")
    with pytest.raises(TimedOut, match=r"within 0\.1 s"):
        await ask(house.client, talk.id, "Hello?", wait=0.1)
