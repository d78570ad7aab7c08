"""Who did it: each message and each request of a person has its user in the log."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from perdure.client.protocol import ConversationHandle
from perdure.errors import Invalid
from tests.client.contract.clients import Clients
from tests.harness import text_answer, tool_call_answer

PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwAD"
    "hgGAWjR9awAAAABJRU5ErkJggg=="
)


async def actors(conversation: ConversationHandle) -> AsyncIterator[tuple[str, Any]]:
    """Yield the kind, or the key of an update, and the actor of each event that people caused."""
    for entry in await conversation.log.read(0, 100):
        event = entry.event
        if event.source == "user":
            yield getattr(event, "key", event.kind), getattr(event, "actor", None)


@pytest.mark.long
async def test_what_another_user_does_has_his_name(clients: Clients) -> None:
    spec = clients.harness.spec(
        text_answer("One."), tool_call_answer(("write", {"text": "x"})), text_answer("Two.")
    )
    async with clients.harness.worker():
        conversation = await clients.anna.start("First.", spec)
        await conversation.result()
        await conversation.grant("ben", "write")
        shared = clients.ben.conversation(conversation.id, "anna")
        await shared.configure({"tags": ["blue"]})
        await shared.note(title="Doors")
        await shared.pause()
        await shared.resume()
        await shared.submit("Second.")
        await conversation.wait_for_turn()
        await shared.interrupt()
        await conversation.close()
        async for entry in conversation.events():
            if b'"closed"' in entry.body:
                break
        seen = [pair async for pair in actors(conversation)]
    assert seen[0] == ("MessageEvent", "anna")
    assert seen[-1] == ("status", "anna")
    others = dict(seen[1:-1])
    assert others == dict.fromkeys(others, "ben")
    assert {"spec", "title", "PauseEvent", "status", "MessageEvent", "InterruptEvent"} <= set(
        others
    )


async def test_a_message_that_exits_ends_the_turn_without_the_model(clients: Clients) -> None:
    async with clients.harness.worker():
        conversation = await clients.anna.start("Hi.", clients.harness.spec(text_answer("Hello.")))
        await conversation.result()
        await conversation.send(" /exit ")
        result = await conversation.result()
        state = await conversation.state()
    assert (result.phase, state.turn, state.response_count) == ("finished", 2, 1)


async def test_an_image_for_a_model_without_vision_is_refused_to_its_sender(
    clients: Clients,
) -> None:
    spec = clients.harness.spec(text_answer("Hello."))
    blind = spec.model_copy(update={"model": spec.model.model_copy(update={"vision": False})})
    async with clients.harness.worker():
        with pytest.raises(Invalid, match="not sent images") as refused:
            await clients.anna.start("What is this?", blind, images=[PIXEL])
        conversation = await clients.anna.start("Hi.", blind)
        await conversation.result()
        with pytest.raises(Invalid, match="not sent images"):
            await conversation.send("What is this?", images=[PIXEL])
        with pytest.raises(Invalid, match="not sent images"):
            await conversation.submit("What is this?", images=[PIXEL])
        state = await conversation.state()
    assert "vision = true" in refused.value.hint
    assert state.turn == 1
