"""The running steps of a conversation."""

import asyncio

import pytest
from temporalio.api.workflowservice.v1 import (
    PauseWorkflowExecutionRequest,
    UnpauseWorkflowExecutionRequest,
)

from perdure.client.live import list_running_steps
from perdure.client.running_step import RunningStep
from tests.harness import ConversationHarness, text_answer, tool_call_answer
from tests.workflows.watching import workspace

ANSWER_TEXT = "one two three four five six seven eight nine ten"

BLOCKED_COMMAND = tool_call_answer(
    ("terminal", {"command": "echo here; until [ -e go ]; do sleep 0.02; done"})
)
"""A command that runs until the file `go` exists."""


@pytest.mark.long
async def test_streamed_text_grows_and_restarts_with_each_attempt(
    harness: ConversationHarness,
) -> None:
    breaks_off = {"content": ANSWER_TEXT, "chunk_delay": 0.1, "failures": [{"disconnect": True}]}
    looks: list[RunningStep] = []
    async with harness.worker():
        conversation = await harness.client.start("Count.", harness.spec(breaks_off))
        over = asyncio.ensure_future(conversation.wait_for_turn())
        while not over.done():
            now = await list_running_steps(conversation.workflow)
            looks.extend(item for item in now if item.kind == "llm.chat" and item not in looks)
            await asyncio.sleep(0.02)
    assert all(ANSWER_TEXT.startswith(look.text) for look in looks)
    first = [look.text for look in looks if look.attempt == 1]
    again = [look.text for look in looks if look.attempt == 2]
    assert first == sorted(first, key=len), "each look shows more than the one before"
    assert again == sorted(again, key=len), "the words that were lost are not said again"
    assert (first[0], again[0]) == ("", "")
    assert len(again[-1]) > len(first[-1]) > 0
    assert "broke off" in (looks[-1].failure or "")


async def test_events_carry_the_run_and_activity_of_their_step(
    harness: ConversationHarness,
) -> None:
    spec = harness.spec(BLOCKED_COMMAND, text_answer("Done."), tools=("terminal",))
    async with harness.worker():
        conversation = await harness.client.start("Go.", spec)
        async for steps in conversation.watch_running_steps():
            calls = [step for step in steps if step.kind == "tool.call" and "here" in step.text]
            if calls:
                break
        (workspace(harness, conversation) / "go").touch()
        await conversation.wait_for_turn()
    entries = await conversation.log.read(0, await conversation.log.end())
    [answer] = [entry for entry in entries if entry.event.kind == "ObservationEvent"]
    origin = (answer.origin.run, answer.origin.activity.partition(" ")[0])
    assert origin == (calls[0].run_id, calls[0].activity_id)


async def test_a_workflow_paused_in_temporal_can_still_be_described(
    harness: ConversationHarness,
) -> None:
    temporal = harness.client.temporal
    spec = harness.spec(BLOCKED_COMMAND, text_answer("Done."), tools=("terminal",))
    async with harness.worker():
        conversation = await harness.client.start("Go.", spec)
        async for steps in conversation.watch_running_steps():
            if any(step.text for step in steps):
                break
        which = {"namespace": temporal.namespace, "workflow_id": conversation.workflow_id}
        await temporal.workflow_service.pause_workflow_execution(
            PauseWorkflowExecutionRequest(**which, request_id="pause")
        )
        assert await conversation.exists()
        assert (await conversation.status()).status == "running"
        assert [step.kind for step in await list_running_steps(conversation.workflow)] == [
            "tool.call"
        ]
        (workspace(harness, conversation) / "go").touch()
        await temporal.workflow_service.unpause_workflow_execution(
            UnpauseWorkflowExecutionRequest(**which, request_id="unpause")
        )
        assert (await conversation.wait_for_turn()).status == "finished"
