"""Signals and answers, by the library and through a gateway."""

import asyncio
from typing import Any

import pytest

from perdure.client.ids import new_conversation_id
from perdure.client.protocol import ConversationHandle
from perdure.errors import Conflict, Forbidden, Invalid, NotFound
from tests.client.contract.clients import Clients
from tests.harness import text_answer, tool_call_answer

TOOLS = ("wait", "ask_user", "finish")


async def start(clients: Clients, tool: str, **arguments: Any) -> ConversationHandle:
    answers = (tool_call_answer((tool, arguments)), text_answer("Done."))
    return await clients.anna.start("Go.", clients.harness.spec(*answers, tools=TOOLS))


async def wait_for(conversation: ConversationHandle, status: str) -> None:
    async with asyncio.timeout(60):
        while (await conversation.status()).status != status:
            await asyncio.sleep(0.05)


async def test_a_signal_is_taken_or_kept_and_recorded_once(clients: Clients) -> None:
    async with clients.harness.worker():
        conversation = await start(clients, "wait", signal="paid")
        await wait_for(conversation, "waiting")
        kept = await conversation.signal("other.name", [1, "two"], "a")
        again = await conversation.signal("other.name", [1, "two"], "a")
        taken = await conversation.signal("paid", {"amount": 12})
        state = await conversation.wait_for_turn(after=taken.seq)
    assert (kept.taken, again, taken.taken) == (False, kept, True)
    assert state.status == "finished"
    assert [signal.name for signal in state.signals] == ["other.name"]


@pytest.mark.long
async def test_a_question_is_answered_by_one_of_its_choices_or_in_words(clients: Clients) -> None:
    async with clients.harness.worker():
        conversation = await start(clients, "ask_user", question="Which?", choices=["red", "blue"])
        state = await conversation.wait_for_turn()
        assert state.status == "waiting_for_answer"
        await wait_for(conversation, "waiting_for_answer")  # the workflow may be a moment behind
        detail = (await conversation.status()).detail
        assert detail is not None
        assert detail.wait is not None
        assert detail.wait.choices == ("red", "blue")
        with pytest.raises(Invalid, match=r"^'green' is none of the choices \('red', 'blue'\)"):
            await conversation.answer(choice="green")
        with pytest.raises(Invalid, match="by `choice`, one of the question's, or by `text`"):
            await conversation.answer("green", "red")
        assert await conversation.answer("Neither: green.") == "Neither: green."
        state = await conversation.wait_for_turn(after=state.next_seq)
        assert state.status == "finished"
        with pytest.raises(Invalid, match=r"^No question waits for an answer"):
            await conversation.answer("green")


BAD_SIGNALS: list[tuple[str, Any, str | None, str]] = [
    ("two words", None, None, "'two words' is no name of a signal"),
    ("ä", None, None, "is no name of a signal"),
    ("x" * 65, None, None, "is no name of a signal"),
    ("paid", "x" * 33_000, None, r"and the limit is 32,768"),
    ("paid", float("nan"), None, "The data of a signal is JSON"),
    ("paid", "\ud800", None, "The data of a signal is JSON"),
    ("paid", None, 'a"b', "A signal_id has 1 to 100"),
]


@pytest.mark.parametrize(("name", "data", "signal_id", "sentence"), BAD_SIGNALS)
async def test_a_bad_signal_is_refused_with_a_sentence(
    clients: Clients, name: str, data: Any, signal_id: str | None, sentence: str
) -> None:
    conversation = clients.anna.conversation(new_conversation_id())
    with pytest.raises(Invalid, match=sentence):
        await conversation.signal(name, data, signal_id)


async def test_a_signal_to_nobody_is_refused(clients: Clients) -> None:
    nobody = clients.anna.conversation(new_conversation_id())
    with pytest.raises(NotFound, match=f"^There is no conversation {nobody.id}"):
        await nobody.signal("paid")
    async with clients.harness.worker():
        spec = clients.harness.spec(text_answer("Hello."))
        conversation = await clients.anna.start("Hi.", spec)
        await conversation.wait_for_turn()
        with pytest.raises((Forbidden, NotFound)):
            await clients.ben.conversation(conversation.id, "anna").signal("paid")
        await conversation.close()
        await wait_for(conversation, "closed")
        with pytest.raises(Conflict, match="closed"):
            await conversation.signal("paid")
