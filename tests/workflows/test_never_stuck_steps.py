"""A step that fails or hangs is reported while it does."""

import sys

import pytest
from temporalio.api.workflowservice.v1 import (
    PauseWorkflowExecutionRequest,
    UnpauseWorkflowExecutionRequest,
)

from perdure.agent.extensions import McpServer
from tests import mcp_server
from tests.harness import ConversationHarness, text_answer, tool_call_answer
from tests.tools.mcp_calling import stdio_server
from tests.workflows.troubles import (
    TROUBLE_TIMEOUT,
    wait_for_silence,
    wait_for_trouble,
    wait_until_well,
)
from tests.workflows.watching import wait_for_status

SERVER = f"{sys.executable} {mcp_server.__file__}"


@pytest.mark.long
async def test_a_model_that_does_not_answer_is_reported(harness: ConversationHarness) -> None:
    away = [{"status": 503}, {"status": 429, "retry_after": 600, "message": "too many"}]
    async with harness.worker():
        talk = await harness.client.start("hi", harness.spec({"content": "one", "failures": away}))
        status = await wait_for_trouble(
            talk, "The model does not answer (asked 2 times)", "too many"
        )
        assert "the turn ends with an error at" in (status.trouble or "")
        await talk.interrupt()
        await wait_for_status(talk, "idle")
        await wait_until_well(talk)


async def test_a_model_that_hangs_is_reported(harness: ConversationHarness) -> None:
    async with harness.worker():
        talk = await harness.client.start("hi", harness.spec({"failures": [{"hang": True}] * 9}))
        assert (await wait_for_silence(talk, "The model has said nothing for")).slow
        await talk.interrupt()
        await wait_for_status(talk, "idle")
        await wait_until_well(talk)


async def test_a_tool_that_hangs_is_reported_by_name(harness: ConversationHarness) -> None:
    async with harness.worker():
        spec = harness.spec(tool_call_answer(("look", {"seconds": 600})), text_answer("ok"))
        talk = await harness.client.start("hi", spec)
        assert (await wait_for_silence(talk, "A tool has said nothing for", "(look)")).slow
        await talk.interrupt()
        await wait_for_status(talk, "idle")
        await wait_until_well(talk)


@pytest.mark.long
async def test_a_server_that_does_not_start_is_reported_until_it_does(
    harness: ConversationHarness,
) -> None:
    begin = harness.folder / "begin"
    waiting = f"until [ -e {begin} ]; do sleep 0.1; done; exec {SERVER}"
    server = McpServer(
        name="slow", command="sh", args=("-c", waiting), start_timeout=TROUBLE_TIMEOUT
    )
    async with harness.worker():
        talk = await harness.client.start("hi", harness.spec(text_answer("ok"), mcp=(server,)))
        await wait_for_silence(talk, "The MCP server slow is starting")
        begin.touch()
        assert (await talk.wait_for_turn()).status == "finished"
        await wait_until_well(talk)


@pytest.mark.long
async def test_a_server_tool_that_hangs_is_reported_by_name(harness: ConversationHarness) -> None:
    async with harness.worker():
        spec = harness.spec(
            tool_call_answer(("test__wait", {"seconds": 600})), mcp=(stdio_server(),)
        )
        talk = await harness.client.start("hi", spec)
        assert (await wait_for_silence(talk, "A tool has said nothing", "(test__wait)")).slow
        await talk.interrupt()
        await wait_for_status(talk, "idle")
        await wait_until_well(talk)


async def test_a_workflow_paused_in_temporal_is_reported(harness: ConversationHarness) -> None:
    execution = {"namespace": harness.client.temporal.namespace}
    service = harness.client.temporal.workflow_service
    async with harness.worker():
        talk = await harness.client.start(
            "hi", harness.spec(text_answer("one"), text_answer("two"))
        )
        await talk.wait_for_turn()
        await service.pause_workflow_execution(
            PauseWorkflowExecutionRequest(workflow_id=talk.workflow_id, reason="test", **execution)
        )
        await wait_for_trouble(talk, "paused", f"temporal workflow unpause -w {talk.workflow_id}")
        await service.unpause_workflow_execution(
            UnpauseWorkflowExecutionRequest(workflow_id=talk.workflow_id, **execution)
        )
        await talk.send("more", message_id="m")
        assert (await talk.wait_for_turn("m")).status == "finished"
        await wait_until_well(talk)
