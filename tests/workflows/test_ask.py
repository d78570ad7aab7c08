"""A question beside a conversation, on a real server: answered, and nothing of it kept."""

import pytest

from perdure.agent.spec import ModelSpec
from perdure.client.ask import ask
from perdure.client.ids import new_conversation_id
from perdure.errors import Conflict, Invalid, NotFound, TimedOut
from perdure.storage.log.state import read_state
from tests.harness import ConversationHarness, text_answer, tool_call_answer

ONE_STEP = (tool_call_answer(("add", {"a": 2, "b": 3})), text_answer("five"))


async def stored_objects(harness: ConversationHarness) -> dict[str, bytes | None]:
    """Return every object of the store."""
    keys = await harness.client.store.list("")
    return {key: await harness.client.store.read(key) for key in keys}


async def test_an_answer_leaves_no_trace_at_rest_and_after_the_end(
    harness: ConversationHarness,
) -> None:
    async with harness.worker():
        talk = await harness.client.start("2 + 3?", harness.spec(*ONE_STEP))
        await talk.wait_for_turn()
        await talk.close()
        await talk.handle.result()
        before = await stored_objects(harness)
        answer = await ask(harness.client, talk.id, "What is it about?")
        again = await ask(harness.client, talk.id, "And now?")
        assert await stored_objects(harness) == before

    assert answer.text == "ANSWER of 6 messages"
    assert answer.usage.purpose == "ask"
    assert again.text == answer.text, "the first question was not kept"


async def test_a_question_is_answered_while_the_agent_works(harness: ConversationHarness) -> None:
    spec = harness.spec(tool_call_answer(("look", {"seconds": 60})), text_answer("done"))
    async with harness.worker():
        talk = await harness.client.start("go", spec)
        async for entry in talk.log.tail():
            if entry.event.kind == "ActionEvent":
                break
        before = await stored_objects(harness)
        answer = await ask(harness.client, talk.id, "What are you doing?")
        assert await stored_objects(harness) == before
        assert (await read_state(talk.log)).status == "running"
        await talk.interrupt()
        await talk.wait_for_turn()

    assert answer.text == "ANSWER of 3 messages", "a call without its result is not shown"


async def test_a_question_without_an_answer_fails_with_a_sentence(
    harness: ConversationHarness,
) -> None:
    nobody = new_conversation_id()
    with pytest.raises(Invalid, match="empty"):
        await ask(harness.client, nobody, " ")
    with pytest.raises(NotFound, match=nobody):
        await ask(harness.client, nobody, "Hello?")
    script = harness.folder / "short.json"
    script.write_text('{"answers": ["one"], "max_messages": 3}')
    spec = harness.spec(text_answer("one"))
    spec = spec.model_copy(update={"model": ModelSpec(name=f"scripted:{script}")})
    async with harness.worker():
        talk = await harness.client.start("hi", spec)
        await talk.wait_for_turn()
        with pytest.raises(Conflict, match="too long"):
            await ask(harness.client, talk.id, "Hello?")
    with pytest.raises(TimedOut, match=r"within 0\.1 s"):
        await ask(harness.client, talk.id, "Hello?", max_wait=0.1)
