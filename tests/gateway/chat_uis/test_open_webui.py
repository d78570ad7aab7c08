"""Open WebUI's own server, unmodified, over a gateway with Temporal and an S3 store."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from tests.gateway.chat_uis.environment import OPEN_WEBUI
from tests.gateway.chat_uis.open_webui import (
    TURN_SECONDS,
    OpenWebUi,
    WebChat,
    serve_open_webui,
)
from tests.gateway.openai.stage import ANSWERS, WORDS, OpenAiStage
from tests.gateway.openai.test_chat import user_texts

pytestmark = [
    pytest.mark.skipif(
        not OPEN_WEBUI.ready(),
        reason="NOT CHECKED: Open WebUI is not installed, see `make chat-uis`",
    ),
    pytest.mark.longest,
]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def web(
    chat_ui_stage: OpenAiStage, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[OpenWebUi]:
    async with serve_open_webui(chat_ui_stage, tmp_path_factory.mktemp("open-webui")) as opened:
        yield opened


async def list_conversations(stage: OpenAiStage) -> list[str]:
    return [it["id"] for it in (await stage.gateway.anna.get("/v1/conversations")).json()["items"]]


def shown(message: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the kinds of what an answer shows, and their texts."""
    assert "error" not in message, message["error"]
    return [(item["type"], text_of(item)) for item in message["output"]]


def text_of(item: dict[str, Any]) -> str:
    parts = item["output"] if "output" in item else item.get("content", [])
    return "".join(part["text"] for part in parts) or str(item.get("arguments", ""))


async def test_its_models_are_the_agents_of_each_connection(web: OpenWebUi) -> None:
    assert await web.models() == sorted(
        f"{kind}.{agent}" for kind in ("chat", "responses") for agent in ANSWERS
    )


FIRST = {
    "chat": [
        ("reasoning", 'Two numbers.\n\n→ add {"a": 2, "b": 3}\n\n← 5'),
        ("message", "I add.\n\nIt is 5."),
    ],
    "responses": [
        ("message", "I add."),
        ("reasoning", "Two numbers."),
        ("function_call", '{"a": 2, "b": 3}'),
        ("function_call_output", "5"),
        ("message", "It is 5."),
    ],
}


@pytest.mark.parametrize("kind", FIRST)
async def test_a_chat_is_one_conversation_and_its_tasks_leave_nothing_in_it(
    web: OpenWebUi, chat_ui_stage: OpenAiStage, kind: str
) -> None:
    before = await list_conversations(chat_ui_stage)
    chat = WebChat(f"{kind}.adder")
    first = await web.say(chat, "2 + 3?")
    assert shown(first) == FIRST[kind]
    assert shown(await web.say(chat, "And then?")) == [("message", "Answer 2.")]
    assert chat.chat_id is not None
    async with asyncio.timeout(TURN_SECONDS):
        while await web.title(chat) == "New Chat":
            await asyncio.sleep(0.2)
    assert await user_texts(chat_ui_stage, chat.chat_id) == ["2 + 3?", "And then?"]
    assert await list_conversations(chat_ui_stage) == [chat.chat_id, *before]


@pytest.mark.parametrize("kind", FIRST)
async def test_a_message_that_is_changed_goes_on_in_a_fork(
    web: OpenWebUi, chat_ui_stage: OpenAiStage, kind: str
) -> None:
    chat = WebChat(f"{kind}.adder")
    await web.say(chat, "2 + 3?")
    changed = replace(chat, messages=list(chat.messages))
    await web.say(chat, "Second.")
    assert shown(await web.say(changed, "Another second.")) == [("message", "Answer 2.")]
    assert chat.chat_id is not None
    assert await user_texts(chat_ui_stage, chat.chat_id) == ["2 + 3?", "Second."]
    fork, *_ = await list_conversations(chat_ui_stage)
    assert await user_texts(chat_ui_stage, fork) == ["2 + 3?", "Another second."]


@pytest.mark.parametrize("kind", FIRST)
async def test_words_that_grow_are_whole_in_the_end(web: OpenWebUi, kind: str) -> None:
    assert shown(await web.say(WebChat(f"{kind}.speaker"), "Count.")) == [("message", WORDS)]


async def test_what_waits_for_a_person_is_said_with_the_address_of_its_page(
    web: OpenWebUi, chat_ui_stage: OpenAiStage
) -> None:
    chat = WebChat("chat.asker")
    said = (await web.say(chat, "Add."))["content"]
    assert said.startswith("This waits for your approval:")
    assert said.endswith(f"{chat_ui_stage.gateway.url}/conversations/{chat.chat_id}")


async def test_what_waits_is_not_said_where_a_connection_has_responses(web: OpenWebUi) -> None:
    said = await web.say(WebChat("responses.asker"), "Add.")
    assert said["content"] == ""
    assert [item["type"] for item in said["output"]] == ["mcp_approval_request"] * 2


@pytest.mark.parametrize("kind", FIRST)
async def test_a_turn_that_fails_says_so_in_the_chat(web: OpenWebUi, kind: str) -> None:
    said = await web.say(WebChat(f"{kind}.broken"), "Go on.")
    assert said["content"] == ""
    assert "auth" in str(said["error"])
