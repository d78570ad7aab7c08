"""The spans of tools that MCP servers offer, by the conventions for MCP."""

import sys
from pathlib import Path
from typing import Any

import pytest
from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError

from perdure.agent.extensions import McpServer
from perdure.events.content import join_text
from perdure.events.tools import ObservationEvent
from perdure.tools.mcp.servers import McpSessions
from tests.harness import text_answer, tool_call_answer
from tests.mcp_server import make
from tests.telemetry import traced_mcp_server
from tests.telemetry.collector import Collector, attributes_of
from tests.telemetry.conftest import Observe
from tests.telemetry.test_names import OURS, PUBLISHED
from tests.tools.conftest import ToolBench, place
from tests.tools.mcp_calling import Caller
from tests.tools.test_mcp_http import port, serving
from tests.workflows.watching import events

__all__ = ["place", "port"]


def asking_server(legacy: bool = False) -> Any:
    """A server with tools that tell what came with their call, and refuse it."""
    server = make(legacy)

    def whence(context: Context[Any]) -> str:
        return str((context.request_context.meta or {}).get("traceparent"))

    def refuse() -> str:
        raise MCPError(-32042, "not here, not so")

    server.add_tool(whence)
    server.add_tool(refuse)
    return server


@pytest.mark.long
async def test_the_spans_of_a_server_are_parts_of_the_trace_of_the_turn_that_calls_it(
    observe: Observe, collector: Collector
) -> None:
    observed = observe()
    harness = observed.conversations
    server = McpServer(
        name="test",
        command=sys.executable,
        args=(str(Path(traced_mcp_server.__file__)),),
        env_values=collector.environment,
    )
    calls = [tool_call_answer(("test__add", {"a": 1})), tool_call_answer(("test__fail", {}))]
    spec = harness.spec(*calls, text_answer("done"), tools=(), mcp=(server,))
    async with observed.worker():
        conversation = await harness.client.start("add", spec)
        await conversation.result()
        await collector.turns(1)
        await collector.wait(lambda: len(collector.named("tools/call")) == 2)
    added, failed = collector.named("execute_tool")
    [root] = collector.named("invoke_agent")
    of_server = collector.named("tools/call")
    assert {span.trace_id for span in (added, failed, *of_server)} == {root.trace_id}
    assert [span.parent_span_id for span in of_server] == [added.span_id, failed.span_id]
    theirs, ours = attributes_of(of_server[0]), attributes_of(added)
    assert ours["gen_ai.tool.name"] == "test__add"
    for name in ("mcp.method.name", "mcp.protocol.version", "jsonrpc.request.id"):
        assert ours[name] == theirs[name]
    assert ours["network.transport"] == "pipe"
    assert not {"mcp.session.id", "server.address", "network.protocol.name"} & ours.keys()
    assert attributes_of(failed)["error.type"] == "tool_error"


@pytest.mark.long
@pytest.mark.parametrize("legacy", [False, True], ids=["2026", "2025"])
async def test_a_server_over_http_has_an_address_and_its_session_an_id_where_there_is_one(
    observe: Observe, collector: Collector, port: int, legacy: bool
) -> None:
    observed = observe()
    harness = observed.conversations
    server = McpServer(name="test", url=f"http://anna:hush@localhost:{port}/mcp")
    names = ("test__whence", "test__refuse")
    spec = harness.spec(
        *(tool_call_answer((name, {})) for name in names), text_answer("."), tools=(), mcp=(server,)
    )
    async with serving(asking_server(legacy).streamable_http_app(), port), observed.worker():
        conversation = await harness.client.start("ask", spec)
        await conversation.result()
        await collector.turns(1)
    asked, refused = collector.named("execute_tool")
    attributes = attributes_of(asked)
    assert attributes["network.transport"] == "tcp"
    assert attributes["network.protocol.name"] == "http"
    assert (attributes["server.address"], attributes["server.port"]) == ("localhost", port)
    assert ("mcp.session.id" in attributes) == legacy
    [answer] = await events(conversation, ObservationEvent)
    trace = f"00-{asked.trace_id.hex()}-{asked.span_id.hex()}-01"
    assert join_text(answer.observation.content) == trace
    assert attributes_of(refused)["error.type"] == "-32042"
    assert attributes_of(refused)["rpc.response.status_code"] == "-32042"
    assert "hush" not in str(collector.spans)
    sent = {name for span in collector.spans for name in attributes_of(span)}
    assert {name for name in sent if not OURS.fullmatch(name)} <= PUBLISHED


async def test_a_server_is_told_of_no_span_where_there_is_none(place: ToolBench, port: int) -> None:
    sessions = McpSessions()
    caller = Caller(sessions, place, McpServer(name="test", url=f"http://127.0.0.1:{port}/mcp"))
    async with serving(asking_server().streamable_http_app(), port):
        assert await caller.call_for_text("whence") == "None"
        await sessions.close()


async def test_a_call_without_a_server_says_nothing_of_one(
    observe: Observe, collector: Collector
) -> None:
    observed = observe()
    harness = observed.conversations
    call = tool_call_answer(("add", {"a": 2, "b": 3}))
    async with observed.worker():
        conversation = await harness.client.start("add", harness.spec(call, text_answer("5")))
        await conversation.result()
        await collector.turns(1)
    [span] = collector.named("execute_tool")
    assert not {name for name in attributes_of(span) if name.startswith(("mcp.", "network."))}
