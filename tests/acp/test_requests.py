"""Requests of every kind, over real servers: what they return, and how bad ones are refused."""

import asyncio
import json
from typing import Any

import pytest
from acp.exceptions import RequestError
from acp.schema import SessionInfo

from perdure.agent.policies import Confirmation
from perdure.client.protocol import ConversationClient
from tests.acp.editor import Running
from tests.acp.stage import open_editor
from tests.harness import ConversationHarness, text_answer, tool_call_answer

pytestmark = pytest.mark.long

UNKNOWN = "00000000-0000-7000-8000-000000000000"
OPEN = {"cwd": "/work", "mcpServers": []}
TEXT = [{"type": "text", "text": "Hello."}]
AUDIO = [{"type": "audio", "data": "", "mimeType": "audio/wav"}]
BINARY = [{"type": "resource", "resource": {"uri": "file:///a", "blob": "AAAA"}}]

REFUSED: dict[str, tuple[str, dict[str, Any], int, str]] = {
    "an unknown method": ("session/dance", {}, -32601, "session/dance"),
    "authentication": ("authenticate", {"methodId": "x"}, -32601, "authenticate"),
    "no version": ("initialize", {}, -32602, "protocolVersion"),
    "a relative folder": ("session/new", {**OPEN, "cwd": "work"}, -32602, "'work'"),
    "no folder": ("session/new", {"mcpServers": []}, -32602, "cwd"),
    "a server of another kind": (
        "session/new",
        {**OPEN, "mcpServers": [{"type": "sse", "name": "a", "url": "http://a"}]},
        -32602,
        "sse",
    ),
    "no session": ("session/load", {**OPEN, "sessionId": UNKNOWN}, -32002, UNKNOWN),
    "an odd id": ("session/load", {**OPEN, "sessionId": "../x"}, -32002, "../x"),
    "nothing to resume": ("session/resume", {**OPEN, "sessionId": UNKNOWN}, -32002, UNKNOWN),
    "nothing to fork": ("session/fork", {**OPEN, "sessionId": UNKNOWN}, -32002, UNKNOWN),
    "nothing to delete": ("session/delete", {"sessionId": UNKNOWN}, -32002, UNKNOWN),
    "nothing to close": ("session/close", {"sessionId": UNKNOWN}, -32002, "not open"),
    "a prompt to nobody": (
        "session/prompt",
        {"sessionId": UNKNOWN, "prompt": TEXT},
        -32002,
        "not open",
    ),
    "an empty prompt": ("session/prompt", {"sessionId": "SESSION", "prompt": []}, -32602, "prompt"),
    "sound": ("session/prompt", {"sessionId": "SESSION", "prompt": AUDIO}, -32602, "audio"),
    "bytes": ("session/prompt", {"sessionId": "SESSION", "prompt": BINARY}, -32602, "file:///a"),
    "an unknown mode": ("session/set_mode", {"sessionId": "SESSION", "modeId": "x"}, -32602, "ask"),
    "a bad cursor": ("session/list", {"cursor": "odd"}, -32602, "cursor"),
    "a command too early": (
        "session/prompt",
        {"sessionId": "SESSION", "prompt": [{"type": "text", "text": "/condense"}]},
        -32602,
        "Send a message first",
    ),
}


async def test_what_is_wrong_is_refused_with_its_code_and_a_sentence(
    client: ConversationClient, world: ConversationHarness
) -> None:
    async with open_editor(client, world.spec(text_answer("5"))) as run:
        session_id = await run.open()
        for name, (method, params, code, words) in REFUSED.items():
            named = {**params, "sessionId": session_id} if "SESSION" in params.values() else params
            with pytest.raises(RequestError, match=words.replace(".", r"\.")) as refused:
                await run.call(method, **named)
            assert refused.value.code == code, name
            assert len(str(refused.value)) < 400, name
        assert (await run.prompt(session_id, "2 + 3?")).stop_reason == "end_turn"


async def test_what_is_no_request_is_refused_and_notifications_are_not_answered(
    world: ConversationHarness,
) -> None:
    async with open_editor(world.client, world.spec()) as run:
        lines = [b"{", b"[]", b'"x"', b'{"jsonrpc":"1.0","id":1,"method":"x"}']
        lines += [b'{"jsonrpc":"2.0","id":true,"method":"x"}', b'{"jsonrpc":"2.0","id":"a"}']
        lines += [b'{"jsonrpc":"2.0","id":"b","method":"initialize","params":[1]}', b"", b"  "]
        lines += [b'{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"x"}}']
        lines += [b'{"jsonrpc":"2.0","method":"odd"}', b'{"jsonrpc":"2.0","id":99,"result":{}}']
        refusals = await say(run, lines)
    codes = [(each.get("id"), each["error"]["code"]) for each in refusals]
    assert codes == [
        *[(None, -32700), (None, -32600), (None, -32600), (None, -32600), (None, -32600)],
        *[("a", -32600), ("b", -32602)],
    ]


async def say(run: Running, lines: list[bytes]) -> list[dict[str, Any]]:
    """Send lines as they are, and return what they are answered."""
    before = len(run.judged.lines)
    for line in lines:
        run.writer.write(line + b"\n")
    await run.call("initialize", protocolVersion=1)
    answers = [json.loads(line) for who, line in run.judged.lines[before:] if who == "agent"]
    return answers[:-1]


async def test_a_session_is_listed_forked_closed_and_deleted(
    client: ConversationClient, world: ConversationHarness
) -> None:
    agent = world.spec(text_answer("5"), text_answer("6"), text_answer("7"))
    async with open_editor(client, agent) as run:
        first, other = await run.open("/work/a"), await run.open("/work/b")
        assert (await run.agent.list_sessions()).sessions == []  # they have not begun
        await run.prompt(first, "2 + 3?")
        await run.prompt(other, "2 + 3?")
        listed = await list_newest_first(run, {other: "/work/b", first: "/work/a"})
        assert listed[0].title == "2 + 3?"
        assert listed[0].updated_at is not None
        assert listed[0].updated_at.endswith("+00:00")
        assert await list_folder(run, "/work/a") == [first]
        fork = await run.agent.fork_session(cwd="/work/c", session_id=first)
        assert fork.session_id not in (first, other)
        await run.prompt(fork.session_id, "3 + 3?")
        assert run.editor.text().endswith("6")
        assert await list_folder(run, "/work/c") == [fork.session_id]
        await run.agent.close_session(session_id=first)
        with pytest.raises(RequestError, match="not open"):
            await run.prompt(first, "Are you there?")
        await run.agent.resume_session(cwd="/work/a", session_id=first)
        await run.prompt(first, "3 + 3?")
        await run.call("session/delete", sessionId=first)
        left = {each.session_id for each in (await run.agent.list_sessions()).sessions}
        assert left == {other, fork.session_id}


async def list_newest_first(run: Running, folders: dict[str, str]) -> list[SessionInfo]:
    """List the sessions, once they are those of `folders` in this order.

    Temporal's list is a moment behind.
    """
    while True:
        listed = (await run.agent.list_sessions()).sessions
        if [(each.session_id, each.cwd) for each in listed] == list(folders.items()):
            return listed
        await asyncio.sleep(0.1)


async def list_folder(run: Running, cwd: str) -> list[str]:
    """List the sessions of a folder, once Temporal knows of any."""
    while not (listed := (await run.agent.list_sessions(cwd=cwd)).sessions):
        await asyncio.sleep(0.1)
    return [each.session_id for each in listed]


async def test_lists_come_in_pages(client: ConversationClient, world: ConversationHarness) -> None:
    agent = world.spec(*[text_answer("5")] * 60)
    names = {(await client.start(None, agent)).id for _ in range(53)}
    while len([x async for x in _ids(client)]) < len(names):
        pass
    async with open_editor(client, agent) as run:
        page = await run.agent.list_sessions()
        found = [each.session_id for each in page.sessions]
        while page.next_cursor is not None:
            page = await run.agent.list_sessions(cursor=page.next_cursor)
            found += [each.session_id for each in page.sessions]
        assert len(found) == len(names)
        assert set(found) == names


async def _ids(client: ConversationClient) -> Any:
    for name in await client.list_conversations(100):
        yield name


async def test_modes_are_policies_before_and_after_the_first_prompt(
    client: ConversationClient, world: ConversationHarness
) -> None:
    call = tool_call_answer(("add", {"a": 2, "b": 3}))
    agent = world.spec(call, text_answer("5"), call, text_answer("5"), call, text_answer("5"))
    async with open_editor(client, agent, ["allow_once"] * 2) as run:
        made = await run.agent.new_session(cwd="/work")
        assert made.modes is not None
        assert made.modes.current_mode_id == "auto"
        name = made.session_id
        await run.agent.set_session_mode(session_id=name, mode_id="ask")
        await run.prompt(name, "Add.")
        assert len(run.editor.asked) == 1
        await run.agent.set_session_mode(session_id=name, mode_id="auto")
        await run.prompt(name, "Add.")
        assert len(run.editor.asked) == 1
        assert run.editor.of_kind("current_mode_update") == []
        policy = Confirmation(policy="risky", threshold="LOW").model_dump()
        await client.conversation(name).configure({"confirmation": policy})
        await run.prompt(name, "Add.")
        [changed] = run.editor.of_kind("current_mode_update")
        assert changed["currentModeId"] == "risky"
    async with open_editor(client, agent) as run:
        loaded = await run.agent.load_session(cwd="/work", session_id=name)
        assert loaded.modes is not None
        assert loaded.modes.current_mode_id == "risky"
