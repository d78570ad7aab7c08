"""Memories in conversations: put by an agent, recalled for a message, ingested at the end."""

import asyncio
from dataclasses import replace

import pytest

from perdure.agent.memory import MemoryAccess
from perdure.api.memories import Memory
from perdure.client.conversation import Conversation
from perdure.errors import Unreachable
from perdure.events.content import join_text
from perdure.events.messages import RecallEvent
from perdure.events.tools import ObservationEvent
from perdure.memory.service import MemoryService
from perdure.operations.purge import purge
from perdure.storage.keys import memory_prefix
from perdure.storage.store import list_keys
from tests.harness import ConversationHarness, text_answer, tool_call_answer
from tests.memory.embedding import LetterEmbedder

TOOLS = ("recall", "remember", "finish")
COLOUR = "Her favourite colour is green."


async def list_memories(harness: ConversationHarness) -> list[Memory]:
    return await MemoryService(harness.client.store).of_user("local").list_memories(100)


async def recalls(conversation: Conversation) -> list[RecallEvent]:
    entries = await conversation.log.read(0, 100)
    return [it.event for it in entries if isinstance(it.event, RecallEvent) and it.event.memories]


@pytest.mark.long
async def test_a_conversation_is_ingested_each_time_that_it_ends(
    harness: ConversationHarness,
) -> None:
    spec = harness.spec(
        *map(text_answer, ("It is 5.", "It is 6.")),
        memory=MemoryAccess(ingest=True),
        finished_timeout=0.1,
    )
    async with harness.worker():
        conversation = await harness.client.start("What is 2 + 3?", spec)
        await wait_for_end(conversation)
        first = await list_memories(harness)
        assert sorted(it.text for it in first) == [
            "The request: What is 2 + 3?\n\nThe last answer: It is 5.",
            "User: What is 2 + 3?\n\nAgent: It is 5.",
        ]
        assert {(it.source, it.conversation_id) for it in first} == {
            ("conversation", conversation.id)
        }
        await conversation.send("And 2 + 4?")
        await wait_for_end(conversation)
    versions = {it.metadata["part"]: it.version for it in await list_memories(harness)}
    assert versions == {"summary": 2, "turn:0": 1, "turn:1": 1}


@pytest.mark.long
async def test_an_agent_without_the_setting_leaves_no_memory(harness: ConversationHarness) -> None:
    spec = harness.spec(text_answer("It is 5."))
    async with harness.worker():
        conversation = await harness.client.start("What is 2 + 3?", spec)
        await conversation.close()
        await wait_for_end(conversation)
    assert await list_memories(harness) == []


async def test_a_conversation_that_ends_as_it_is_deleted_leaves_no_memory(
    harness: ConversationHarness,
) -> None:
    spec = harness.spec(text_answer("It is 5."), memory=MemoryAccess(ingest=True))
    async with harness.worker():
        deleted = await harness.client.start("What is 2 + 3?", spec)
        await deleted.wait_for_turn()
        await deleted.delete()
        await wait_for_end(deleted)
        purged = await harness.client.start("What is 2 + 3?", spec)
        await purged.wait_for_turn()
        await purge(harness.client, [purged.id])
    assert await list_memories(harness) == []


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            Unreachable("The embedding model does not answer."),
            "The embedding model does not answer.",
        ),
        (ArithmeticError("no such length"), "ArithmeticError: the worker's log has it as "),
    ],
)
async def test_why_memories_could_not_be_searched_is_recorded_and_the_turn_goes_on(
    harness: ConversationHarness, error: Exception, sentence: str
) -> None:
    letters = LetterEmbedder()
    letters.error = error
    service = MemoryService(harness.client.store, letters)
    broken = replace(harness, resources=replace(harness.resources, memories=service))
    spec = broken.spec(text_answer("Green."), memory=MemoryAccess(recall=3))
    async with broken.worker():
        conversation = await broken.client.start("Which colour?", spec)
        assert (await conversation.result()).text == "Green."
    entries = await conversation.log.read(0, 100)
    recalled = [it.event.content for it in entries if isinstance(it.event, RecallEvent)]
    assert f"could not be searched. {sentence}" in recalled[-1]


@pytest.mark.long
async def test_a_damaged_memory_stops_no_conversation(harness: ConversationHarness) -> None:
    store = harness.client.store
    spec = harness.spec(
        *map(text_answer, ("It is 5.", "It is 6.")),
        memory=MemoryAccess(recall=3, ingest=True),
        finished_timeout=0.1,
    )
    async with harness.worker():
        conversation = await harness.client.start("What is 2 + 3?", spec)
        await wait_for_end(conversation)
        for key in [key async for key in list_keys(store, memory_prefix("local"))]:
            await store.replace(key, b'{"text": 1}')
        await conversation.send("And 2 + 4?")
        await wait_for_end(conversation)
        assert (await conversation.result()).text == "It is 6."
    entries = await conversation.log.read(0, 100)
    recalled = [it.event.content for it in entries if isinstance(it.event, RecallEvent)]
    assert "could not be searched. " in recalled[-1]


@pytest.mark.long
async def test_what_an_agent_remembers_is_recalled_in_later_conversations(
    harness: ConversationHarness,
) -> None:
    putting = harness.spec(
        tool_call_answer(("remember", {"text": COLOUR, "key": "colour"})),
        text_answer("I know it now."),
        tools=TOOLS,
    )
    asking = harness.spec(
        tool_call_answer(("recall", {"query": "colours"})),
        text_answer("Green."),
        tools=TOOLS,
        memory=MemoryAccess(recall=3),
    )
    async with harness.worker():
        first = await harness.client.start("My favourite colour is green.", putting)
        await first.result()
        second = await harness.client.start("Which colour do I like?", asking)
        assert (await second.result()).text == "Green."
        stranger = await harness.client.as_user("ben").start("Which colour do I like?", asking)
        await stranger.result()
    [memory] = await list_memories(harness)
    [recalled] = await recalls(second)
    assert recalled.memories == (memory.id,)
    assert COLOUR in recalled.content
    assert recalled.query == "Which colour do I like?"
    assert COLOUR in await _observed(second)
    assert await recalls(stranger) == []
    assert await _observed(stranger) == "Nothing is remembered about that."


async def _observed(conversation: Conversation) -> str:
    entries = await conversation.log.read(0, 100)
    [found] = [it.event for it in entries if isinstance(it.event, ObservationEvent)]
    return join_text(found.observation.content)


async def wait_for_end(conversation: Conversation) -> None:
    """Wait until the workflow has ended, for now or for good."""
    async with asyncio.timeout(30):
        await conversation.workflow.handle.result()
