"""What a conversation is doing at this moment, seen from outside while it does it."""

import asyncio

import pytest
from temporalio.api.workflowservice.v1 import (
    PauseWorkflowExecutionRequest,
    UnpauseWorkflowExecutionRequest,
)

from client.live import Growing, growing
from tests.house import House, calls, says
from tests.workflows.watching import workspace

SAID = "one two three four five six seven eight nine ten"

HELD = calls(("terminal", {"command": "echo here; until [ -e go ]; do sleep 0.02; done"}))
"""Is at work until somebody lets it go, however busy the machine is."""


@pytest.mark.long
async def test_words_grow_and_another_attempt_begins_them_again(house: House) -> None:
    breaks_off = {"content": SAID, "chunk_delay": 0.1, "failures": [{"disconnect": True}]}
    looks: list[Growing] = []
    async with house.worker():
        conversation = await house.client.start("Count.", house.spec(breaks_off))
        over = asyncio.ensure_future(conversation.finished())
        while not over.done():
            now = await growing(conversation.remote)
            looks.extend(one for one in now if one.kind == "llm.chat" and one not in looks)
            await asyncio.sleep(0.02)
    assert all(SAID.startswith(one.text) for one in looks)
    first = [one.text for one in looks if one.attempt == 1]
    again = [one.text for one in looks if one.attempt == 2]
    assert first == sorted(first, key=len), "each look shows more than the one before"
    assert again == sorted(again, key=len), "the words that were lost are not said again"
    assert (first[0], again[0]) == ("", "")
    assert len(again[-1]) > len(first[-1]) > 0
    assert "broke off" in (looks[-1].failure or "")


async def test_events_name_the_step_that_they_come_of(house: House) -> None:
    spec = house.spec(HELD, says("Done."), tools=("terminal",))
    async with house.worker():
        conversation = await house.client.start("Go.", spec)
        async for steps in conversation.live():
            said = [one for one in steps if one.kind == "tool.call" and "here" in one.text]
            if said:
                break
        (workspace(house, conversation) / "go").touch()
        await conversation.finished()
    entries = await conversation.log.read(0, await conversation.log.end())
    [answer] = [one for one in entries if one.event.kind == "ObservationEvent"]
    origin = (answer.origin.run, answer.origin.activity.partition(" ")[0])
    assert origin == (said[0].run_id, said[0].activity_id)


async def test_a_workflow_that_an_operator_pauses_in_temporal_can_still_be_looked_at(
    house: House,
) -> None:
    temporal = house.client.temporal
    spec = house.spec(HELD, says("Done."), tools=("terminal",))
    async with house.worker():
        conversation = await house.client.start("Go.", spec)
        async for steps in conversation.live():
            if any(one.text for one in steps):
                break
        which = {"namespace": temporal.namespace, "workflow_id": conversation.workflow_id}
        await temporal.workflow_service.pause_workflow_execution(
            PauseWorkflowExecutionRequest(**which, request_id="pause")
        )
        assert await conversation.exists()
        assert (await conversation.status()).status == "running"
        assert [one.kind for one in await growing(conversation.remote)] == ["tool.call"]
        (workspace(house, conversation) / "go").touch()
        await temporal.workflow_service.unpause_workflow_execution(
            UnpauseWorkflowExecutionRequest(**which, request_id="unpause")
        )
        assert (await conversation.finished()).status == "finished"
