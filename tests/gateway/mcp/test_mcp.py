"""Conversations as tools of the Model Context Protocol, for its own client, unmodified."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp_types import CallToolResult, TextResourceContents

from perdure.agent.policies import Confirmation
from perdure.api.keys import Scope
from tests.gateway.stage import GatewayStage, open_gateway
from tests.harness import ConversationHarness, text_answer, tool_call_answer

pytestmark = pytest.mark.long

TOOLS = {
    *("start_conversation", "send_message", "wait", "respond", "control"),
    *("get_events", "list_conversations"),
}


@asynccontextmanager
async def serve(
    world: ConversationHarness, *answers: dict[str, Any], **fields: Any
) -> AsyncIterator[GatewayStage]:
    """Serve a gateway whose agent `adder` has a model with these answers."""
    agent = world.spec(*answers, **fields).model_dump(mode="json", exclude_unset=True)
    async with world.worker(), open_gateway(world, agents={"adder": agent}) as stage:
        yield stage


@asynccontextmanager
async def connect(stage: GatewayStage, user: Any, mode: Any = "auto") -> AsyncIterator[Client]:
    """Connect a client with the key of a user."""
    headers = {"Authorization": user.headers["Authorization"]}
    async with create_mcp_http_client(headers=headers) as http:
        transport = streamable_http_client(f"{stage.url}/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:
            yield client


def fields_of(result: CallToolResult) -> dict[str, Any]:
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return dict(result.structured_content)


def sentence_of(result: CallToolResult) -> str:
    assert result.is_error
    return str(getattr(result.content[0], "text", ""))


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_conversation_by_tools(world: ConversationHarness, mode: str) -> None:
    async with (
        serve(world, text_answer("5"), text_answer("6")) as stage,
        connect(stage, stage.anna, mode) as client,
    ):
        listed = await client.list_tools()
        assert {tool.name for tool in listed.tools} == TOOLS
        assert all(tool.output_schema and tool.description for tool in listed.tools)
        start = {"task": "2 + 3?", "agent": "adder", "request_id": f"r-{mode}", "wait_seconds": 30}
        first = fields_of(await client.call_tool("start_conversation", start))
        again = fields_of(await client.call_tool("start_conversation", start))
        assert first == again
        assert (first["status"], first["answer"]) == ("finished", "5")
        name = first["conversation_id"]
        sent = {"conversation_id": name, "text": "3 + 3?", "wait_seconds": 30}
        second = fields_of(await client.call_tool("send_message", sent))
        assert (second["answer"], second["pending"]) == ("6", [])
        page = fields_of(
            await client.call_tool("get_events", {"conversation_id": name, "limit": 3})
        )
        assert [event["seq"] for event in page["events"]] == [0, 1, 2]
        assert page["has_more"]
        behind = {"conversation_id": name, "after_seq": second["last_seq"] - 1}
        newest = fields_of(await client.call_tool("get_events", behind))
        assert [event["seq"] for event in newest["events"]] == [second["last_seq"]]
        found = fields_of(await client.call_tool("list_conversations", {}))
        assert [item["conversation_id"] for item in found["conversations"]] == [name]
        read = await client.read_resource(f"perdure://conversations/{name}")
        assert isinstance(read.contents[0], TextResourceContents)
        assert '"answer":"6"' in read.contents[0].text
        unknown = await client.call_tool("wait", {"conversation_id": "0" * 8})
        assert "use a UUID" in sentence_of(unknown)


async def test_calls_wait_for_a_person(world: ConversationHarness) -> None:
    call = tool_call_answer(("add", {"a": 2, "b": 3}))
    always = Confirmation(policy="always")
    async with (
        serve(world, call, call, text_answer("5"), confirmation=always) as stage,
        connect(stage, stage.anna) as client,
    ):
        start = {"task": "2 + 3?", "agent": "adder", "wait_seconds": 30}
        asked = fields_of(await client.call_tool("start_conversation", start))
        assert asked["status"] == "waiting_for_confirmation"
        [waiting] = asked["pending"]
        assert (waiting["tool"], "respond" in asked["hint"]) == ("add", True)
        name = {"conversation_id": asked["conversation_id"]}
        answer = {**name, "accept": False, "reason": "Not so."}
        await client.call_tool("respond", answer)
        asked = fields_of(await client.call_tool("wait", {**name, "seconds": 30}))
        answer = {**name, "accept": True, "call_ids": [asked["pending"][0]["call_id"]]}
        await client.call_tool("respond", answer)
        done = fields_of(await client.call_tool("wait", {**name, "seconds": 30}))
        assert (done["status"], done["answer"]) == ("finished", "5")
        refused = await client.call_tool("respond", {**name, "accept": True})
        assert sentence_of(refused)


async def test_a_turn_is_interrupted_and_goes_on(world: ConversationHarness) -> None:
    slow = {"content": "Never said to its end.", "chunk_delay": 60.0}
    async with serve(world, slow) as stage, connect(stage, stage.anna) as client:
        begun = fields_of(
            await client.call_tool("start_conversation", {"task": "Go.", "agent": "adder"})
        )
        name = {"conversation_id": begun["conversation_id"]}
        await stage.wait_until(begun["conversation_id"], "running")
        working = fields_of(await client.call_tool("wait", {**name, "seconds": 0.5}))
        assert (working["status"], "wait" in working["hint"]) == ("running", True)
        await client.call_tool("control", {**name, "action": "interrupt"})
        stopped = fields_of(await client.call_tool("wait", {**name, "seconds": 30}))
        assert stopped["status"] == "idle"


async def test_nobody_gets_in_without_a_key_and_nobody_sees_anothers(
    world: ConversationHarness,
) -> None:
    async with serve(world, text_answer("5")) as stage:
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        refused = await stage.client_with(None).post("/mcp", json=request)
        assert (refused.status_code, refused.json()["code"]) == (401, "unauthorized")
        async with connect(stage, stage.anna) as client:
            start = {"task": "2 + 3?", "agent": "adder", "wait_seconds": 30}
            name = fields_of(await client.call_tool("start_conversation", start))["conversation_id"]
        async with connect(stage, stage.ben) as client:
            for tool in ("wait", "get_events", "send_message"):
                sent = {"conversation_id": name, **({"text": "Hi."} if "send" in tool else {})}
                assert name in sentence_of(await client.call_tool(tool, sent))
            found = fields_of(await client.call_tool("list_conversations", {}))
            assert found["conversations"] == []
        reads: tuple[Scope, ...] = ("read",)
        reader = await stage.client("anna", reads)
        async with connect(stage, reader) as client:
            sent = {"conversation_id": name, "text": "Hi."}
            assert "scope" in sentence_of(await client.call_tool("send_message", sent))
