"""The tools of MCP: another's conversations, and requests as no one would write them."""

import json
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp_types import CallToolResult

from perdure.client.ids import new_conversation_id
from tests.gateway.mcp.test_mcp import connect
from tests.gateway.security.foreign_routes import AGENT, fill
from tests.gateway.security.scene import CANARY, RATES, make_annas
from tests.gateway.security.test_foreign_surfaces import NOT_JSON, spoil
from tests.gateway.stage import as_json, open_gateway
from tests.harness import ConversationHarness, text_answer

pytestmark = pytest.mark.long

ADDRESSED: dict[str, dict[str, Any]] = {
    "send_message": {"text": "Hi."},
    "wait": {"seconds": 0},
    "respond": {"accept": True, "call_ids": ["1"], "reason": "Yes."},
    "control": {"action": "interrupt"},
    "get_events": {"after_seq": 0, "limit": 5},
}
"""The arguments of each tool that addresses a conversation, beside its id."""

CALLS = {
    **{name: {"conversation_id": "{name}", **more} for name, more in ADDRESSED.items()},
    "start_conversation": {"task": "Hi.", "agent": "none", "request_id": "r", "wait_seconds": 0},
    "list_conversations": {"limit": 5},
}


def said(result: CallToolResult, name: str) -> str:
    """Return what a tool says, without the id of the conversation."""
    assert result.is_error, result
    return "".join(getattr(part, "text", "") for part in result.content).replace(name, "(name)")


async def read_resource(client: Client, name: str) -> str:
    with pytest.raises(MCPError) as caught:
        await client.read_resource(f"perdure://conversations/{name}")
    return str(caught.value).replace(name, "(name)")


async def test_what_is_another_users_is_as_what_does_not_exist(world: ConversationHarness) -> None:
    absent = new_conversation_id()
    async with world.worker(), open_gateway(world, gateway_rates=RATES) as stage:
        name = (await make_annas(stage)).conversation_id
        before = (await stage.anna.get(f"/v1/conversations/{name}/events")).json()
        async with connect(stage, stage.ben) as client:
            tools = (await client.list_tools()).tools
            assert {
                tool.name for tool in tools if "conversation_id" in tool.input_schema["properties"]
            } == ADDRESSED.keys()
            for tool, more in ADDRESSED.items():
                strange, none = [
                    said(await client.call_tool(tool, {"conversation_id": it, **more}), it)
                    for it in (name, absent)
                ]
                assert strange == none, tool
                assert CANARY not in strange
            assert await read_resource(client, name) == await read_resource(client, absent)
        assert (await stage.anna.get(f"/v1/conversations/{name}/events")).json() == before


async def test_a_spoilt_request_is_answered_with_a_sentence(world: ConversationHarness) -> None:
    sayer = as_json(world.spec(*[text_answer("Said.")] * 5))
    settings: dict[str, Any] = {"gateway_rates": RATES, "agents": {AGENT: sayer}}
    headers = {
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
    }
    async with world.worker(), open_gateway(world, **settings) as stage:
        tried = 0
        for tool, arguments in CALLS.items():
            params = {"name": tool, "arguments": fill(arguments, {"name": new_conversation_id()})}
            call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            bodies = [json.dumps(body).encode() for body in spoil(call)]
            for body in (*NOT_JSON, *bodies):
                answer = await stage.anna.post("/mcp", content=body, headers=headers)
                tried += 1
                assert answer.status_code < 500, (tool, body[:200], answer.text[:200])
                assert "Traceback" not in answer.text
        assert tried > 300
