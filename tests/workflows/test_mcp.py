"""Servers whose tools change while a conversation goes on."""

import asyncio

import pytest

from perdure.events.messages import SystemPromptEvent
from tests.harness import ConversationHarness, text_answer, tool_call_answer
from tests.tools.mcp_calling import stdio_server
from tests.workflows.watching import events, observations

ADD = tool_call_answer(("test__add", {"a": 1}))
NEWCOMER = tool_call_answer(("test__newcomer", {"a": 4, "b": 5}))


@pytest.mark.long
async def test_a_new_tool_of_a_server_is_announced_and_can_be_called(
    harness: ConversationHarness,
) -> None:
    """The news may be slower than the answer of the call: what has changed is seen by a later."""
    turn = (ADD, NEWCOMER, text_answer("done"))
    spec = harness.spec(
        tool_call_answer(("test__change", {})), *turn * 200, tools=(), mcp=(stdio_server(),)
    )
    async with harness.worker(), asyncio.timeout(120):
        talk = await harness.client.start("go", spec)
        state = await talk.wait_for_turn()
        while "9" not in await observations(talk):
            await talk.send("again", message_id=f"turn {state.turn}")
            state = await talk.wait_for_turn(f"turn {state.turn}")
    assert state.status == "finished"
    before, after = await events(talk, SystemPromptEvent)
    assert {tool.name for tool in before.tools} ^ {tool.name for tool in after.tools} == {
        "test__fail",
        "test__newcomer",
    }
    assert before.system_prompt == after.system_prompt
