"""Turns of a real conversation, with many listeners."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from itertools import islice

import pytest
import pytest_asyncio

from perdure.client.conversation import Conversation
from perdure.errors import NotFound, Unreachable
from perdure.gateway.following.followers import Followers
from perdure.gateway.turns.kept_parts import KeptParts
from perdure.gateway.turns.parts import Called, Ended, Part, Returned, Text
from perdure.gateway.turns.turns import TurnKey, Turns
from tests.gateway.following.conftest import followers
from tests.harness import ConversationHarness, text_answer, tool_call_answer
from tests.workflows.conftest import harness, temporal

__all__ = ["followers", "harness", "temporal"]

WORDS = "one two three four five six seven eight nine ten"
SLOW = {"content": WORDS, "chunk_delay": 0.15}
CALL = tool_call_answer(("add", {"a": 2, "b": 3}))


@pytest_asyncio.fixture
async def turns(followers: Followers, harness: ConversationHarness) -> AsyncIterator[Turns]:
    made = Turns(harness.client, followers.follow)
    yield made
    await made.close()


async def collect(turns: Turns, key: TurnKey, first: int = 0) -> list[Part]:
    async with aclosing(turns.find(key).listen(first)) as parts:
        return [part async for part in parts]


async def begin(harness: ConversationHarness, *answers: dict[str, object]) -> Conversation:
    """Return a conversation that has had a first turn."""
    spec = harness.spec(text_answer("Hello."), *answers)
    conversation = await harness.client.start("Hi.", spec)
    await conversation.wait_for_turn()
    return conversation


async def send(conversation: Conversation, text: str = "2 + 3?") -> TurnKey:
    return TurnKey("local", conversation.id, (await conversation.submit(text)).seq)


@pytest.mark.long
async def test_all_listeners_get_all_parts_whenever_they_come(
    harness: ConversationHarness, followers: Followers, turns: Turns
) -> None:
    conversation = await begin(harness, CALL, SLOW, text_answer("Bye."))
    key = await send(conversation)
    early = asyncio.ensure_future(collect(turns, key))
    left = turns.find(key).listen()
    await anext(left)
    await left.aclose()
    parts = await early
    await send(conversation, "And?")
    await conversation.wait_for_turn()
    elsewhere = Turns(harness.client, followers.follow)
    assert await collect(turns, key) == parts
    assert await collect(elsewhere, key) == parts
    assert await collect(elsewhere, key, 3) == parts[3:]
    await elsewhere.close()
    kinds = [type(part) for part in parts if not isinstance(part, Text)]
    assert kinds == [Called, Returned, Ended]
    texts = [part for part in parts if isinstance(part, Text)]
    assert "".join(part.text for part in texts) == WORDS
    assert [part.last for part in texts].count(True) == 1
    assert (texts[-1].final, texts[-1].whole) == (True, WORDS)


@pytest.mark.long
async def test_words_come_while_they_grow(harness: ConversationHarness, turns: Turns) -> None:
    conversation = await begin(harness, {"content": WORDS, "chunk_delay": 0.4})
    key = await send(conversation)
    async with aclosing(turns.find(key).listen()) as parts:
        assert isinstance(await anext(parts), Text)
        assert (await conversation.status()).status == "running"


async def test_a_listener_gets_parts_that_are_not_kept_from_the_log(
    harness: ConversationHarness, turns: Turns
) -> None:
    conversation = await begin(harness, CALL, text_answer(WORDS))
    key = await send(conversation)
    turn = turns.find(key)
    turn.parts = KeptParts(max_chars=150)
    parts = await collect(turns, key)
    assert turn.parts.first > 0
    assert await collect(turns, key) == parts
    assert await collect(turns, key, 2) == parts[2:]


async def test_a_turn_without_listeners_is_read_anew_after_a_while(
    harness: ConversationHarness, followers: Followers
) -> None:
    conversation = await begin(harness, text_answer("Five."))
    turns = Turns(harness.client, followers.follow, keep_seconds=0.05)
    key = await send(conversation)
    turn = turns.find(key)
    parts = await collect(turns, key)
    assert turns.find(key) is turn
    await asyncio.sleep(0.2)
    assert turns.find(key) is not turn
    assert await collect(turns, key) == parts
    await turns.close()


async def test_turns_that_are_too_large_together_are_dropped_at_once(
    harness: ConversationHarness, followers: Followers
) -> None:
    conversation = await begin(harness, text_answer("Five."), text_answer("Six."))
    turns = Turns(harness.client, followers.follow, max_alone_chars=300)
    first = await send(conversation)
    await collect(turns, first)
    turn = turns.find(first)
    second = await send(conversation)
    await collect(turns, second)
    assert turns.find(first) is not turn
    await turns.close()


async def test_a_turn_of_nobody_raises_what_following_raises(turns: Turns) -> None:
    with pytest.raises(NotFound):
        await collect(turns, TurnKey("local", "00000000-0000-4000-8000-000000000000", 3))


@pytest.mark.long
async def test_a_listener_learns_that_the_process_ends(
    harness: ConversationHarness, turns: Turns
) -> None:
    conversation = await begin(harness, {"content": "Five.", "delay": 3})
    waiting = asyncio.ensure_future(collect(turns, await send(conversation)))
    await asyncio.sleep(0.1)
    await turns.close()
    with pytest.raises(Unreachable):
        await waiting


def test_kept_parts_have_their_numbers() -> None:
    kept, parts = KeptParts(max_chars=350), [Text("item", str(number)) for number in range(5)]
    kept.add(parts)
    assert kept.first == 2
    assert kept.after(3) == list(islice(parts, 3, None))
