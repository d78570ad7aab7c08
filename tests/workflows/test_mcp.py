"""Servers whose tools change while a conversation goes on."""

import asyncio

from events.messages import SystemPromptEvent
from tests.house import House, calls, says
from tests.tools.mcp_calling import started
from tests.workflows.watching import events, observed

ADD = calls(("test__add", {"a": 1}))
NEWCOMER = calls(("test__newcomer", {"a": 4, "b": 5}))


async def test_a_tool_that_a_server_begins_to_offer_is_told_of_and_can_be_called(
    house: House,
) -> None:
    """The news may be slower than the answer of the call: what has changed is seen by a later."""
    turn = (ADD, NEWCOMER, says("done"))
    spec = house.spec(calls(("test__change", {})), *turn * 200, tools=(), mcp=(started(),))
    async with house.worker(), asyncio.timeout(120):
        talk = await house.client.start("go", spec)
        state = await talk.finished()
        while "9" not in await observed(talk):
            await talk.send("again", message_id=f"turn {state.turn}")
            state = await talk.finished(f"turn {state.turn}")
    assert state.status == "finished"
    before, after = await events(talk, SystemPromptEvent)
    assert {tool.name for tool in before.tools} ^ {tool.name for tool in after.tools} == {
        "test__fail",
        "test__newcomer",
    }
    assert before.system_prompt == after.system_prompt
