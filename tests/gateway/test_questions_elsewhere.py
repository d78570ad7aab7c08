"""A question of an agent in protocols that have none: its last words, and a message answers it."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
import pytest_asyncio

from tests.gateway.ag_ui.judges import judge
from tests.gateway.ag_ui.stage import AgUiStage, ask, find, said, user
from tests.gateway.ag_ui.test_runs import again, spoken
from tests.gateway.openai.stage import make_client
from tests.gateway.stage import GatewayStage, as_json, open_gateway
from tests.harness import ConversationHarness, text_answer, tool_call_answer

pytestmark = pytest.mark.long

QUESTION = {"question": "Which colour?", "choices": ["red", "blue"]}
AS_TEXT = "Which colour?\n1. red\n2. blue"


@pytest_asyncio.fixture
async def painter(harness: ConversationHarness) -> AsyncIterator[GatewayStage]:
    """A gateway whose agent asks before it answers, and a worker for it."""
    answers = (tool_call_answer(("ask_user", QUESTION)), text_answer("Painted."))
    agent = as_json(harness.spec(*answers, tools=("ask_user", "finish")))
    settings: dict[str, Any] = {"gateway_max_concurrent_conversations": 0}
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(harness.worker())
        yield await stack.enter_async_context(
            open_gateway(harness, agents={"painter": agent}, **settings)
        )


async def test_a_response_of_openai_asks_and_the_next_one_answers(painter: GatewayStage) -> None:
    async with await make_client(painter, "anna", max_retries=0) as client:
        first = await client.responses.create(model="painter", input="Paint.")
        assert (first.status, first.output_text) == ("completed", AS_TEXT)
        second = await client.responses.create(
            model="painter", input="blue", previous_response_id=first.id
        )
    assert (second.status, second.output_text) == ("completed", "Painted.")


async def test_a_chat_of_openai_asks_and_the_next_message_answers(painter: GatewayStage) -> None:
    named = {"X-Conversation-Id": "a chat about paint"}
    messages: list[Any] = [{"role": "user", "content": "Paint."}]
    async with await make_client(painter, "anna", max_retries=0) as client:
        create = client.chat.completions.create
        first = await create(model="painter", messages=messages, extra_headers=named)
        [choice] = first.choices
        assert choice.message.content == AS_TEXT
        assert choice.finish_reason == "stop"
        messages += [
            {"role": "assistant", "content": choice.message.content},
            {"role": "user", "content": "blue"},
        ]
        second = await create(model="painter", messages=messages, extra_headers=named)
    assert second.choices[0].message.content == "Painted."


async def test_a_run_of_ag_ui_asks_and_the_next_one_answers(painter: GatewayStage) -> None:
    stage, first = AgUiStage(painter), user("Paint.")
    body = ask(first)
    before = await stage.run("painter", body)
    judge(before)
    assert said(before) == AS_TEXT
    assert len(find(before, "RUN_FINISHED")) == 1
    after = await stage.run("painter", again(body, first, *spoken(before), user("blue")))
    judge(after)
    assert said(after) == "Painted."
