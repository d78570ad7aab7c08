"""Secrets in requests of clients of others, where they belong and where they do not."""

import json
from typing import Any

from tests.gateway.security.canaries import Asking, Witness

CHATS, RESPONSES = "/openai/v1/chat/completions", "/openai/v1/responses"
CONVERSATIONS = "/openhands/api/conversations"

JSON_TYPE = {"Content-Type": "application/json"}


async def drive_foreign(asking: Asking, witness: Witness, conversation_id: str) -> None:
    """Ask the routes of OpenAI, OpenHands, AG-UI and MCP, with keys of ours and of others."""
    await drive_openai(asking, witness)
    await drive_openhands(asking, witness, conversation_id)
    await drive_ag_ui(asking, witness)
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    for name in ("API key", "unknown key", "forged token"):
        await asking.ask("POST", "/mcp", witness.secrets[name], json=request)
    await drive_mcp(asking, witness, conversation_id)


async def drive_mcp(asking: Asking, witness: Witness, conversation_id: str) -> None:
    """Call the tools with keys where texts and ids belong, and with ones that are not asked for."""
    secrets, own = witness.secrets, {"conversation_id": conversation_id}
    headers = {"Accept": "application/json, text/event-stream", "X-Api-Key": secrets["header"]}
    for tool, arguments in (
        ("start_conversation", {"task": "Hi.", "request_id": f"\n{secrets['password']}"}),
        ("wait", {**own, "seconds": secrets["password"]}),
        ("get_events", {**own, "limit": [secrets["password"]], "api_key": secrets["model key"]}),
        ("control", {**own, "action": secrets["password"]}),
    ):
        params = {"name": tool, "arguments": arguments}
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        for name in ("API key", "unknown key"):
            await asking.ask("POST", "/mcp", secrets[name], json=request, headers=headers)


async def drive_openai(asking: Asking, witness: Witness) -> None:
    secrets = witness.secrets
    key, once = secrets["API key"], {"Idempotency-Key": secrets["idempotency key"]}
    said: dict[str, Any] = {"model": "none", "messages": [{"role": "user", "content": "Hi."}]}
    for name in ("unknown key", "forged token", "token"):
        await asking.ask("GET", "/openai/v1/models", secrets[name])
    for header in ("X-Api-Key", "OpenAI-Organization", "Proxy-Authorization"):
        await asking.ask("POST", CHATS, key, json=said, headers={header: secrets["header"]})
    for body in (
        {**said, "api_key": secrets["model key"]},
        {**said, "tools": [{"type": "mcp", "authorization": secrets["model key"]}]},
        {**said, "stream": secrets["model key"]},
    ):
        await asking.ask("POST", CHATS, key, json=body, headers=once)
        await asking.ask("POST", RESPONSES, key, json={**body, "input": "Hi."}, headers=once)
    malformed = f'{{"model": "none", "api_key": "{secrets["model key"]}'.encode()
    await asking.ask("POST", RESPONSES, key, content=malformed, headers=JSON_TYPE)


async def drive_ag_ui(asking: Asking, witness: Witness) -> None:
    secrets = witness.secrets
    key, path = secrets["API key"], "/ag-ui/drawer"
    await asking.ask("PUT", "/v1/agents/drawer", key, json={"description": "Draws."})
    run: dict[str, Any] = {"threadId": "1", "runId": "1", "messages": []}
    for name in ("API key", "unknown key", "forged token", "token"):
        await asking.ask("POST", path, secrets[name], json=run)
    for body in (
        {**run, "forwardedProps": {"api_key": secrets["model key"]}, "runId": 7},
        {**run, "resume": [{"interruptId": [secrets["model key"]]}]},
        {**run, "tools": secrets["model key"]},
    ):
        headers = {"X-Api-Key": secrets["header"]}
        refused = await asking.ask("POST", path, key, json=body, headers=headers)
        assert refused.status_code == 422, refused.text
    malformed = f'{{"threadId": "{secrets["model key"]}'.encode()
    await asking.ask("POST", path, key, content=malformed, headers=JSON_TYPE)


async def drive_openhands(asking: Asking, witness: Witness, conversation_id: str) -> None:
    secrets = witness.secrets
    own = {"X-Session-API-Key": secrets["API key"]}
    llm = {
        "model": "scripted:none.json",
        "usage_id": "agent",
        "api_key": secrets["model key"],
        "aws_secret_access_key": secrets["password"],
        "extra_headers": {"Authorization": secrets["header"]},
    }
    agent = {"kind": "Agent", "llm": llm, "tools": []}
    made = await asking.ask("POST", CONVERSATIONS, json={"agent": agent}, headers=own)
    assert made.status_code == 201, made.text
    path = f"{CONVERSATIONS}/{made.json()['id']}"
    for asked in (path, f"{path}/events/search", f"{CONVERSATIONS}/search"):
        await asking.ask("GET", asked, headers=own)
        for name in ("unknown key", "forged token"):
            await asking.ask("GET", asked, headers={"X-Session-API-Key": secrets[name]})
    value = {"kind": "StaticSecret", "value": secrets["password"]}
    looked_up = {"kind": "LookupSecret", "url": f"http://127.0.0.1:9/{secrets['password']}"}
    for source in (secrets["password"], value, looked_up):
        body = {"secrets": {"TOKEN": source}}
        await asking.ask("POST", f"{path}/secrets", json=body, headers=own)
        await asking.ask("POST", CONVERSATIONS, json={"agent": agent, **body}, headers=own)
    for broken in ({"llm": secrets["model key"]}, {"llm": llm, "tools": secrets["model key"]}):
        await asking.ask("POST", CONVERSATIONS, json={"agent": broken}, headers=own)
    malformed = json.dumps({"agent": agent})[:-3].encode()
    await asking.ask("POST", CONVERSATIONS, content=malformed, headers={**own, **JSON_TYPE})
    for name in ("API key", "unknown key"):
        socket = f"/openhands/sockets/events/{conversation_id}?resend_mode=all"
        await asking.open_socket(f"{socket}&session_api_key={secrets[name]}", {})
        await asking.open_socket(socket, {"X-Session-API-Key": secrets[name]})
