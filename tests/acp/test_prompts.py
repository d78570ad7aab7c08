"""Prompts of every kind, over real servers: what reaches the agent, and why its turns stop."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from acp import text_block
from acp.exceptions import RequestError
from acp.schema import (
    EmbeddedResourceContentBlock,
    EnvVariable,
    HttpMcpServer,
    ImageContentBlock,
    McpServerStdio,
    ResourceContentBlock,
    TextResourceContents,
)

from perdure.client.protocol import ConversationClient
from perdure.events.messages import MessageEvent
from tests.acp.stage import open_editor
from tests.harness import ConversationHarness, text_answer, tool_call_answer

pytestmark = pytest.mark.long

PIXEL = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
        "1f15c4890000000d49444154789c626001000000ffff03000006000557bfabd40000000049454e44ae426082"
    )
).decode()

TEXT = [{"type": "text", "text": "Hello."}]


async def test_turns_stop_for_reasons(
    client: ConversationClient, world: ConversationHarness
) -> None:
    call = tool_call_answer(("add", {"a": 2, "b": 3}))
    agent = world.spec(
        {"content": "It is", "finish_reason": "length"},
        *(call, call, text_answer("Never.")),
        limits={"max_iterations": 2},
    )
    async with open_editor(client, agent) as run:
        name = await run.open()
        assert (await run.prompt(name, "2 + 3?")).stop_reason == "max_tokens"
        assert (await run.prompt(name, "Add.")).stop_reason == "max_turn_requests"


async def test_a_task_that_is_refused_and_a_model_that_fails(
    client: ConversationClient, world: ConversationHarness
) -> None:
    agent = world.spec(
        tool_call_answer(("reject_task", {"reason": "It is wrong."})),
        {"content": "Never.", "failures": [{"status": 401}] * 9},
        tools=("think", "finish", "reject_task"),
    )
    async with open_editor(client, agent) as run:
        name = await run.open()
        assert (await run.prompt(name, "Do wrong.")).stop_reason == "refusal"
        with pytest.raises(RequestError) as failed:
            await run.prompt(name, "And now?")
        assert failed.value.code == -32603
        assert isinstance(failed.value.data, dict)
        assert failed.value.data.keys() == {"code", "detail"}
        assert str(failed.value.data["code"]) in str(failed.value)


async def test_a_question_ends_a_turn_and_the_next_prompt_answers_it(
    client: ConversationClient, world: ConversationHarness
) -> None:
    question = {"question": "Which colour?", "choices": ["red", "blue"]}
    answers = (tool_call_answer(("ask_user", question)), text_answer("Painted."))
    agent = world.spec(*answers, tools=("ask_user", "finish"))
    async with open_editor(client, agent) as run:
        name = await run.open()
        assert (await run.prompt(name, "Paint.")).stop_reason == "end_turn"
        assert run.editor.text() == "Which colour?\n1. red\n2. blue"
        assert (await run.prompt(name, "Blue.")).stop_reason == "end_turn"
        assert run.editor.text().endswith("Painted.")
    assert (await client.conversation(name).state()).status == "finished"


async def test_what_a_prompt_has_reaches_the_agent_and_comes_back(
    client: ConversationClient, world: ConversationHarness
) -> None:
    agent = world.spec(text_answer("I see."))
    agent = agent.model_copy(
        update={"model": agent.model.model_copy(update={"vision": True, "max_input_tokens": 9000})}
    )
    resource = TextResourceContents(uri="file:///work/a.py", text="a = 1\n")
    blocks: list[Any] = [
        text_block("Look at"),
        ResourceContentBlock(type="resource_link", uri="file:///work/b.py", name="b.py"),
        EmbeddedResourceContentBlock(type="resource", resource=resource),
        ImageContentBlock(type="image", data=PIXEL, mime_type="image/png"),
    ]
    async with open_editor(client, agent) as run:
        name = await run.open()
        assert (await run.agent.prompt(session_id=name, prompt=blocks)).stop_reason == "end_turn"
        [usage] = run.editor.of_kind("usage_update")
        assert usage["size"] == 9000
        assert 0 < usage["used"] < 9000
    entries = await client.conversation(name).log.read(0, 50)
    [sent] = [
        entry.event
        for entry in entries
        if isinstance(entry.event, MessageEvent) and entry.event.source == "user"
    ]
    text, image = sent.llm_message.content
    assert getattr(text, "text", "") == (
        "Look at\n[b.py: file:///work/b.py]\n"
        '<resource uri="file:///work/a.py">\na = 1\n\n</resource>'
    )
    assert image.type == "image"
    async with open_editor(client, agent) as run:
        await run.agent.load_session(cwd="/work", session_id=name)
        _, shown = run.editor.of_kind("user_message_chunk")
        assert shown["content"] == {"type": "image", "mimeType": "image/png", "data": PIXEL}


@pytest.mark.parametrize("is_local", [True, False])
async def test_mcp_servers_of_the_editor_are_the_agents(
    world: ConversationHarness, is_local: bool
) -> None:
    program = McpServerStdio(
        name="My files", command="/bin/files", args=["-v"], env=[EnvVariable(name="A", value="1")]
    )
    http = HttpMcpServer(type="http", name="docs", url="http://127.0.0.1:9/mcp", headers=[])
    async with open_editor(world.client, world.spec(text_answer("5")), is_local=is_local) as run:
        made = await run.agent.new_session(cwd="/work", mcp_servers=[program, http])
        with pytest.raises(RequestError, match="'docs' cannot be used"):  # there is none
            await run.prompt(made.session_id, "2 + 3?")
        state = await world.client.conversation(made.session_id).state()
    assert state.spec is not None
    named = {server.name: server for server in state.spec.mcp}
    assert named.keys() == ({"My-files", "docs"} if is_local else {"docs"})
    if is_local:
        files = named["My-files"]
        assert (files.command, files.args, files.env_values) == ("/bin/files", ("-v",), {"A": "1"})


async def test_commands_after_a_slash(
    client: ConversationClient, world: ConversationHarness, tmp_path: Path
) -> None:
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"answers": [{"content": "0"}, {"content": "Another."}]}))
    async with open_editor(client, world.spec(text_answer("5"))) as run:
        name = await run.open()
        await run.editor.wait_for("available_commands_update")
        [told] = run.editor.of_kind("available_commands_update")
        assert [each["name"] for each in told["availableCommands"]] == ["condense", "model"]
        await run.prompt(name, "2 + 3?")
        assert (await run.prompt(name, "/condense")).stop_reason == "end_turn"
        with pytest.raises(RequestError, match="needs a name"):
            await run.prompt(name, "/model")
        await run.prompt(name, f"/model scripted:{other}")
        run.editor.forget()
        await run.prompt(name, "/models are fine")
        assert run.editor.text() == "Another."
