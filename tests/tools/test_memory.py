"""The tools `recall` and `remember`, as a model calls them."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import pytest

from perdure.agent.memory import MemoryAccess
from perdure.api.memories import FoundMemory, PutMemory
from perdure.events.content import join_text
from perdure.memory.agent_memory import AgentMemory
from perdure.memory.service import MemoryService
from perdure.memory.user_memory import UserMemory
from perdure.storage.errors import StoreUnavailable
from perdure.tools.memory import RECALL, REMEMBER
from perdure.tools.tool import Tool, ToolFailed
from tests.tools.conftest import ToolBench

CONVERSATION = "0199a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b"


def open_memory(place: ToolBench) -> UserMemory:
    return MemoryService(place.context.log.store).of_user("anna")


async def call(
    tool: Tool,
    place: ToolBench,
    access: MemoryAccess | None = None,
    mask: Callable[[str], str] = str,
    **arguments: Any,
) -> str:
    access = access or MemoryAccess()
    memory = AgentMemory(open_memory(place), access, CONVERSATION, access.app or "", mask)
    context = replace(place.context, memory=memory)
    action = tool.parse(json.loads(json.dumps(arguments)))
    return join_text((await tool.run(action, context)).content)


async def test_what_is_remembered_has_its_author_and_no_secret(place: ToolBench) -> None:
    access = MemoryAccess(app="shop", tags=("shoes",))

    def mask(text: str) -> str:
        return text.replace("hunter2", "<secret:KEY>")

    answer = await call(
        REMEMBER, place, access, mask, text="The key is hunter2.", key="door", tags=["home"]
    )
    [memory] = await open_memory(place).list_memories(10)
    assert answer == f"Remembered as {memory.id}."
    assert memory.text == "The key is <secret:KEY>."
    assert (memory.source, memory.conversation_id) == ("agent", CONVERSATION)
    assert (memory.app, memory.key, memory.tags) == ("shop", "door", ("shoes", "home"))


async def test_a_call_that_is_made_again_remembers_once(place: ToolBench) -> None:
    first = await call(REMEMBER, place, text="It rains.")
    assert await call(REMEMBER, place, text="It rains.") == first
    [memory] = await open_memory(place).list_memories(10)
    assert memory.id == place.context.action_id


async def test_an_agent_that_may_not_is_told_so(place: ToolBench) -> None:
    with pytest.raises(ToolFailed, match="may not put"):
        await call(REMEMBER, place, MemoryAccess(write=False), text="It rains.")
    with pytest.raises(ToolFailed, match="may not search"):
        await call(RECALL, place, MemoryAccess(search="none"), query="rain")
    with pytest.raises(ToolFailed, match="There are no memories here"):
        await REMEMBER.run(REMEMBER.parse({"text": "x"}), place.context)
    assert await open_memory(place).list_memories(10) == []


async def test_a_text_of_ten_megabytes_is_refused_in_a_sentence(place: ToolBench) -> None:
    with pytest.raises(ToolFailed, match="65,536 bytes at most, and this one 10,485,760"):
        await call(REMEMBER, place, text="a" * 10 * 1024 * 1024)
    assert await open_memory(place).list_memories(10) == []


@pytest.mark.parametrize(
    ("tool", "arguments", "fault"),
    [
        (RECALL, {}, "`query` is missing"),
        (RECALL, {"query": "x", "limit": 21}, "`limit`"),
        (REMEMBER, {"text": ""}, "`text`"),
        (REMEMBER, {"text": "x", "user": "ben"}, "`user`"),
    ],
)
def test_bad_arguments_are_named(tool: Tool, arguments: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        tool.parse(arguments)


def test_recall_is_read_only_and_remember_may_be_called_again() -> None:
    assert RECALL.definition.annotations.readOnlyHint
    assert not REMEMBER.definition.annotations.readOnlyHint
    assert REMEMBER.definition.annotations.repeatable


async def test_a_search_is_made_again_where_the_store_does_not_answer(place: ToolBench) -> None:
    memory = LostAnswers(open_memory(place), MemoryAccess(), CONVERSATION)
    context = replace(place.context, memory=memory)
    found = await RECALL.run(RECALL.parse({"query": "rain"}), context)
    assert join_text(found.content) == "Nothing is remembered about that."
    assert memory.lost == []


class LostAnswers(AgentMemory):
    """Memories of a store whose first answers are lost."""

    @cached_property
    def lost(self) -> list[str]:
        return ["reset", "reset"]

    async def recall(self, query: str, limit: int) -> list[FoundMemory]:
        del query, limit
        if self.lost:
            raise StoreUnavailable(self.lost.pop())
        return []


@pytest.mark.long
async def test_an_agent_recalls_what_its_access_covers(place: ToolBench) -> None:
    memory = open_memory(place)
    await memory.put(PutMemory(text="A red shoe.", app="shop", tags=("new",), key="<shoe>"))
    await memory.put(PutMemory(text="A blue shoe.", app="shop"))
    await memory.put(PutMemory(text="A lost shoe.", app="home"))
    of_app = await call(RECALL, place, MemoryAccess(app="shop"), query="shoe")
    assert "red" in of_app
    assert "blue" in of_app
    assert "lost" not in of_app
    assert '" key="&lt;shoe&gt;" date="' in of_app
    assert "lost" in await call(RECALL, place, MemoryAccess(search="user"), query="shoe")
    tagged = await call(RECALL, place, MemoryAccess(app="shop", tags=("new",)), query="shoe")
    assert "red" in tagged
    assert "blue" not in tagged
    nothing = await call(RECALL, place, MemoryAccess(app="shop"), query="hats")
    assert nothing == "Nothing is remembered about that."
