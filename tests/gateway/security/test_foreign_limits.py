"""The limit of a user's turns: each surface for clients of others tells of it, and goes on."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
import websockets
from openai import RateLimitError

from tests.gateway.ag_ui.judges import judge
from tests.gateway.ag_ui.stage import ask, find, parse_events, user
from tests.gateway.mcp.test_mcp import connect, fields_of
from tests.gateway.openai.stage import make_client
from tests.gateway.security.foreign_routes import AG_UI, OPENHANDS
from tests.gateway.stage import GatewayStage, as_json, open_gateway
from tests.harness import ConversationHarness

pytestmark = pytest.mark.long

AGENT = "sleeper"

SENTENCE = "Too many of your conversations were at work at once"


@pytest_asyncio.fixture
async def stage(world: ConversationHarness) -> AsyncIterator[GatewayStage]:
    """A gateway at which a user may have one turn at work, and an agent that sleeps at first."""
    agent = as_json(world.spec({"content": "one two three", "chunk_delay": 60}))
    limit: dict[str, Any] = {"gateway_max_concurrent_conversations": 1}
    async with world.worker(), open_gateway(world, agents={AGENT: agent}, **limit) as opened:
        yield opened


async def wait_until_running(stage: GatewayStage) -> str:
    """Wait until a conversation of Anna's is at work; return its id."""
    async with asyncio.timeout(60):
        while True:
            listed = (await stage.anna.get("/v1/conversations")).json()["items"]
            for item in listed:
                if item["status"]["status"] == "running":
                    return str(item["id"])
            await asyncio.sleep(0.1)


async def begin_another(stage: GatewayStage, first: str) -> str:
    """Begin another turn of Anna's by the native API, and wait until the first one is suspended."""
    body = {"text": "Go.", "agent": AGENT}
    made = await stage.anna.post("/v1/conversations", json=body)
    assert made.status_code == 201, made.text
    await stage.wait_until(first, "idle")
    return str(made.json()["id"])


async def check_changed_places(stage: GatewayStage, first: str, second: str) -> None:
    """Check that a message has made the first turn go on, in place of the second."""
    await stage.wait_until(second, "idle")
    shown = await stage.wait_until(first, "running")
    assert shown["status"]["reason"] is None


async def test_ag_ui_ends_the_run_with_an_error_and_a_message_goes_on(stage: GatewayStage) -> None:
    body, path = ask(user("Go.")), f"{AG_UI}/{AGENT}"
    asking = asyncio.create_task(stage.anna.post(path, json=body))
    second = await begin_another(stage, await wait_until_running(stage))
    events = parse_events((await asking).text)
    judge(events)
    last = events[-1]
    assert (last["type"], last["code"]) == ("RUN_ERROR", "too_many_conversations")
    assert last["message"].startswith(SENTENCE)
    [delta] = find(events, "STATE_DELTA")
    assert {"op": "replace", "path": "/status", "value": "idle"} in delta["delta"]
    more = {**body, "runId": str(uuid.uuid4()), "messages": [*body["messages"], user("Go on.")]}
    async with stage.anna.stream("POST", path, json=more) as response:
        assert response.status_code == 200
        await check_changed_places(stage, body["threadId"], second)


async def test_openai_fails_the_response_and_the_next_one_goes_on(stage: GatewayStage) -> None:
    async with await make_client(stage, "anna", max_retries=2) as anna:
        asking = asyncio.create_task(anna.responses.create(model=AGENT, input="Go."))
        name = await wait_until_running(stage)
        second = await begin_another(stage, name)
        first = await asking
        assert (first.status, first.error and first.error.code) == (
            *("failed", "rate_limit_exceeded"),
        )
        assert first.error is not None
        assert SENTENCE in first.error.message
        more: Any = {"previous_response_id": first.id, "background": True}
        again = await anna.responses.create(model=AGENT, input="Go on.", **more)
        assert again.status == "in_progress"
        await check_changed_places(stage, name, second)


async def test_openai_fails_the_chat_once_and_the_chat_goes_on(stage: GatewayStage) -> None:
    named = {"X-Conversation-Id": str(uuid.uuid4())}
    messages: Any = [{"role": "user", "content": "Go."}]
    async with await make_client(stage, "anna", max_retries=2) as anna:
        create = anna.chat.completions.create
        asking = asyncio.create_task(create(model=AGENT, messages=messages, extra_headers=named))
        name = await wait_until_running(stage)
        second = await begin_another(stage, name)
        with pytest.raises(RateLimitError) as caught:
            await asking
        assert SENTENCE in caught.value.message
        assert caught.value.response.headers["x-should-retry"] == "false"
        messages.append({"role": "user", "content": "Go on."})
        async with await create(model=AGENT, messages=messages, extra_headers=named, stream=True):
            await check_changed_places(stage, name, second)


async def test_openhands_is_paused_and_a_message_goes_on(stage: GatewayStage) -> None:
    name = await start_openhands(stage)
    url = f"{stage.url.replace('http', 'ws', 1)}{OPENHANDS}/sockets/events/{name}"
    key = stage.anna.headers["authorization"].removeprefix("Bearer ")
    async with websockets.connect(url) as socket:
        await socket.send(json.dumps({"type": "auth", "session_api_key": key}))
        second = await begin_another(stage, await wait_until_running(stage))
        told: list[Any] = []
        async with asyncio.timeout(60):
            while not (told and told[-1][0] == "full_state" and told[-1][1] != "running"):
                event = json.loads(await socket.recv())
                value = event.get("value")
                status = value.get("execution_status") if isinstance(value, dict) else value
                told.append((event.get("key"), status))
                if event.get("key") == "status_update":
                    assert value["message"].startswith(SENTENCE)
    assert told[-1] == ("full_state", "paused")
    assert "status_update" in [key for key, _ in told]
    message = {"content": [{"type": "text", "text": "Go on."}], "run": True}
    path = f"{OPENHANDS}/api/conversations/{name}"
    assert (await stage.anna.post(f"{path}/events", json=message)).status_code == 200
    await check_changed_places(stage, name, second)


async def start_openhands(stage: GatewayStage) -> str:
    model = stage.gateway.settings.agents[AGENT]["model"]["name"]
    agent = {"kind": "Agent", "llm": {"model": model, "usage_id": "agent"}, "tools": []}
    said = {"content": [{"type": "text", "text": "Go."}], "run": True}
    body = {"agent": agent, "initial_message": said}
    made = await stage.anna.post(f"{OPENHANDS}/api/conversations", json=body)
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


async def test_mcp_says_so_and_a_message_goes_on(stage: GatewayStage) -> None:
    async with connect(stage, stage.anna) as client:
        start = {"task": "Go.", "agent": AGENT, "wait_seconds": 0}
        name = fields_of(await client.call_tool("start_conversation", start))["conversation_id"]
        assert await wait_until_running(stage) == name
        second = fields_of(await client.call_tool("start_conversation", start))["conversation_id"]
        await stage.wait_until(name, "idle")
        waited = fields_of(await client.call_tool("wait", {"conversation_id": name, "seconds": 30}))
        assert waited["status"] == "idle"
        assert "too many conversations" in waited["reason"]
        assert "send_message" in waited["hint"]
        more = {"conversation_id": name, "text": "Go on.", "wait_seconds": 0}
        assert fields_of(await client.call_tool("send_message", more))["status"] == "running"
        await check_changed_places(stage, name, second)
