"""Turns of a real conversation, with many listeners."""

import asyncio

import pytest

from perdure.errors import NotFound
from perdure.gateway.following.followers import Followers
from perdure.gateway.turn_parts import Called, Ended, Part, Returned, Text
from perdure.gateway.turns import Turn, Turns
from tests.harness import ConversationHarness, text_answer, tool_call_answer

WORDS = "one two three four five six"


async def collect(turn: Turn) -> list[Part]:
    return [part async for part in turn.listen()]


async def test_all_listeners_get_all_parts_whenever_they_come(
    harness: ConversationHarness, followers: Followers
) -> None:
    first_answer = text_answer("Hello.")
    slow = {"content": WORDS, "chunk_delay": 0.15}
    spec = harness.spec(first_answer, tool_call_answer(("add", {"a": 2, "b": 3})), slow)
    conversation = await harness.client.start("Hi.", spec)
    await conversation.wait_for_turn()
    turns = Turns(followers.follow)
    seq = (await conversation.submit("2 + 3?")).seq
    early = asyncio.ensure_future(collect(turns.find("local", conversation.id, seq)))
    left = turns.find("local", conversation.id, seq).listen()
    await anext(left)
    await left.aclose()  # type: ignore[attr-defined]
    parts = await early
    late = await collect(turns.find("local", conversation.id, seq))
    await turns.close()
    assert late == parts
    kinds = [type(part) for part in parts if not isinstance(part, Text)]
    assert kinds == [Called, Returned, Ended]
    texts = [part for part in parts if isinstance(part, Text)]
    assert "".join(part.text for part in texts) == WORDS
    assert [part.last for part in texts].count(True) == 1
    assert (texts[-1].final, len(texts) > 1) == (True, True)


async def test_a_turn_of_nobody_raises_what_following_raises(followers: Followers) -> None:
    turns = Turns(followers.follow)
    with pytest.raises(NotFound):
        await collect(turns.find("local", "00000000-0000-4000-8000-000000000000", 3))
    await turns.close()
