"""A step that fails or hangs is told while it does."""

import sys

import pytest
from temporalio.api.workflowservice.v1 import (
    PauseWorkflowExecutionRequest,
    UnpauseWorkflowExecutionRequest,
)

from agent.spec import McpServer
from tests import mcp_server
from tests.house import House, calls, says
from tests.tools.mcp_calling import started
from tests.workflows.troubles import LONGEST, silent, told, well
from tests.workflows.watching import until

SERVER = f"{sys.executable} {mcp_server.__file__}"


async def test_a_model_that_does_not_answer_is_told(house: House) -> None:
    away = [{"status": 503}, {"status": 429, "retry_after": 600, "message": "too many"}]
    async with house.worker():
        talk = await house.client.start("hi", house.spec({"content": "one", "failures": away}))
        found = await told(talk, "The model does not answer (asked 2 times)", "too many")
        assert "the turn ends with an error at" in (found.trouble or "")
        await talk.interrupt()
        await until(talk, "idle")
        await well(talk)


async def test_a_model_that_hangs_is_told(house: House) -> None:
    async with house.worker():
        talk = await house.client.start("hi", house.spec({"failures": [{"hang": True}] * 9}))
        assert (await silent(talk, "The model has said nothing for")).slow
        await talk.interrupt()
        await until(talk, "idle")
        await well(talk)


async def test_a_tool_that_hangs_is_told_by_its_name(house: House) -> None:
    async with house.worker():
        spec = house.spec(calls(("look", {"seconds": 600})), says("ok"))
        talk = await house.client.start("hi", spec)
        assert (await silent(talk, "A tool has said nothing for", "(look)")).slow
        await talk.interrupt()
        await until(talk, "idle")
        await well(talk)


@pytest.mark.long
async def test_a_server_that_does_not_start_is_told_until_it_does(house: House) -> None:
    begin = house.folder / "begin"
    waiting = f"until [ -e {begin} ]; do sleep 0.1; done; exec {SERVER}"
    server = McpServer(name="slow", command="sh", args=("-c", waiting), start_timeout=LONGEST)
    async with house.worker():
        talk = await house.client.start("hi", house.spec(says("ok"), mcp=(server,)))
        await silent(talk, "The MCP servers of its agent have not started for")
        begin.touch()
        assert (await talk.finished()).status == "finished"
        await well(talk)


@pytest.mark.long
async def test_a_servers_tool_that_hangs_is_told_by_its_name(house: House) -> None:
    async with house.worker():
        spec = house.spec(calls(("test__wait", {"seconds": 600})), mcp=(started(),))
        talk = await house.client.start("hi", spec)
        assert (await silent(talk, "A tool has said nothing", "(test__wait)")).slow
        await talk.interrupt()
        await until(talk, "idle")
        await well(talk)


async def test_an_operator_who_pauses_a_workflow_in_temporal_is_told_of(house: House) -> None:
    execution = {"namespace": house.client.temporal.namespace}
    service = house.client.temporal.workflow_service
    async with house.worker():
        talk = await house.client.start("hi", house.spec(says("one"), says("two")))
        await talk.finished()
        await service.pause_workflow_execution(
            PauseWorkflowExecutionRequest(workflow_id=talk.workflow_id, reason="test", **execution)
        )
        await told(talk, "paused", f"temporal workflow unpause -w {talk.workflow_id}")
        await service.unpause_workflow_execution(
            UnpauseWorkflowExecutionRequest(workflow_id=talk.workflow_id, **execution)
        )
        await talk.send("more", message_id="m")
        assert (await talk.finished("m")).status == "finished"
        await well(talk)
