"""HTTP transport: restarts, errors and refusals of a server."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import Context
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    Tool,
)
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from perdure.agent.extensions import McpServer
from perdure.tools.mcp.servers import McpSessions, McpUnavailable, OutcomeUnknown
from perdure.tools.tool import ToolFailed
from tests.mcp_server import make
from tests.tools.conftest import ToolBench
from tests.tools.mcp_calling import Caller, environment_variable
from tests.tools.processes import wait_until


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number: int = free.getsockname()[1]
        return number


@asynccontextmanager
async def serving(app: Any, port: int) -> AsyncIterator[uvicorn.Server]:
    config = uvicorn.Config(app, port=port, log_config=None, timeout_graceful_shutdown=0)
    server = uvicorn.Server(config)
    running = asyncio.create_task(server.serve())
    await wait_until(lambda: server.started)
    try:
        yield server
    finally:
        server.should_exit = True
        await running


@asynccontextmanager
async def calling(place: ToolBench, port: int, **settings: Any) -> AsyncIterator[Caller]:
    sessions = McpSessions()
    url = f"http://127.0.0.1:{port}/mcp"
    yield Caller(sessions, place, McpServer(name="test", url=url, **settings))
    await sessions.close()


@pytest.mark.parametrize("legacy", [False, True], ids=["2026", "2025"])
async def test_a_server_is_called_through_its_restarts(
    place: ToolBench, port: int, legacy: bool
) -> None:
    async with calling(place, port) as caller:
        async with serving(make(legacy).streamable_http_app(), port):
            add = next(
                definition
                for definition in await caller.definitions()
                if definition.name == "test__add"
            )
            assert await caller.call_for_text("add", a="2") == "3"
            assert await caller.call_for_text("wait", seconds=0) == "waited"
            assert caller.place.progress == ["waiting (1/4)"]
        with pytest.raises(ToolFailed, match=r"'test' (gave no result|cannot be used): it cannot"):
            await caller.call_recorded(add, a=1)
        for number in range(2):
            async with serving(make(legacy).streamable_http_app(), port):
                assert await caller.call_for_text("add", a=number) == str(number + 1)


@pytest.mark.parametrize("legacy", [False, True], ids=["2026", "2025"])
async def test_tools_that_come_and_go_are_noticed(
    place: ToolBench, port: int, legacy: bool
) -> None:
    async with calling(place, port) as caller, serving(make(legacy).streamable_http_app(), port):
        known = await caller.definitions()
        await caller.call("change")
        async with asyncio.timeout(10):
            while "test__newcomer" not in {
                definition.name for definition in await caller.definitions()
            }:
                await asyncio.sleep(0.02)
        now = await caller.sessions.find_changes("one", (caller.server,), place.workspace, known)
        assert now == await caller.definitions()


async def test_a_call_whose_connection_broke_is_not_made_again(place: ToolBench, port: int) -> None:
    server = make()
    calls: list[str] = []

    async def deed(context: Context[Any]) -> str:
        calls.append("done")
        await context.report_progress(1)
        await asyncio.sleep(600)
        return "never"

    server.add_tool(deed)
    async with calling(place, port) as caller:
        async with serving(server.streamable_http_app(), port):
            call = asyncio.create_task(caller.call("deed"))
            await wait_until(lambda: caller.place.progress)
        with pytest.raises(OutcomeUnknown, match="the session was lost before it answered"):
            await call
        assert calls == ["done"]


async def test_headers_come_from_the_workers_environment(place: ToolBench, port: int) -> None:
    app = make().streamable_http_app()

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        known = dict(scope.get("headers", ())).get(b"authorization") == b"Bearer secret"
        refusal = PlainTextResponse("who are you?", status_code=401)
        await (app if known or scope["type"] != "http" else refusal)(scope, receive, send)

    async with serving(guarded, port):
        with environment_variable("TEST_MCP_TOKEN", "Bearer secret") as name:
            async with calling(place, port, headers={"Authorization": name}) as caller:
                assert await caller.call_for_text("add", a=1) == "2"
        async with calling(place, port) as caller:
            with pytest.raises(McpUnavailable, match="it answered HTTP 401 Unauthorized"):
                await caller.definitions()


async def listed(ctx: Any, params: PaginatedRequestParams | None) -> ListToolsResult:  # noqa: ARG001
    number = int(params.cursor) if params and params.cursor else 0
    schema = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
    tool = Tool(name=f"tool{number}", input_schema={"type": "object"}, output_schema=schema)
    return ListToolsResult(tools=[tool], next_cursor=str(number + 1) if number < 2 else None)


async def answered(ctx: Any, params: CallToolRequestParams) -> CallToolResult:  # noqa: ARG001
    return CallToolResult(content=[], structured_content={"sum": params.name})


async def test_every_page_is_read_and_an_answer_against_its_schema_is_no_answer(
    place: ToolBench, port: int
) -> None:
    server: Server[Any] = Server("paged", on_list_tools=listed, on_call_tool=answered)
    async with serving(server.streamable_http_app(), port), calling(place, port) as caller:
        names = [definition.name for definition in await caller.definitions()]
        assert names == ["test__tool0", "test__tool1", "test__tool2"]
        with pytest.raises(OutcomeUnknown, match="its answer breaks the protocol: Invalid struct"):
            await caller.call("tool1")


async def nothing(request: Request) -> Response:
    return JSONResponse({"detail": request.url.path}, status_code=503)


@pytest.mark.parametrize(
    ("path", "sentence"),
    [("/mcp", "it answered HTTP 503 Service Unavailable"), ("/else", "it answered HTTP 404 Not")],
)
async def test_a_program_that_is_no_server_is_reported_in_a_sentence(
    place: ToolBench, port: int, path: str, sentence: str
) -> None:
    app = Starlette(routes=[Route(path, nothing, methods=["POST"])])
    async with serving(app, port), calling(place, port) as caller:
        with pytest.raises(McpUnavailable, match=f"MCP server 'test' cannot be used: {sentence}"):
            await caller.definitions()
