"""An agent that waits, on the page: its question is answered by mouse and by keyboard."""

from typing import Any

import pytest

from tests.gateway.page.browser import DESKTOP, PHONE, Visitor, expect, visit
from tests.gateway.page.conftest import key_of
from tests.gateway.page.test_accessibility import find_violations
from tests.gateway.stage import GatewayStage
from tests.harness import text_answer, tool_call_answer

pytestmark = pytest.mark.page

QUESTION = {"question": "Which colour?", "choices": ["red", "blue"], "for": "1d"}
TOOLS = ("ask_user", "wait", "finish")


async def start(stage: GatewayStage, tool: str, status: str, **arguments: Any) -> str:
    call = tool_call_answer((tool, arguments))
    name = await stage.start(call, text_answer("Over."), tools=TOOLS)
    await stage.wait_until(name, status)
    return name


async def open_question(stage: GatewayStage, anna: Visitor) -> str:
    name = await start(stage, "ask_user", "waiting_for_answer", **QUESTION)
    await anna.goto(f"/conversations/{name}")
    await expect(anna, "section.waiting >> text=Which colour?")
    return name


async def results_of(stage: GatewayStage, name: str) -> list[str]:
    page = (await stage.anna.get(f"/v1/conversations/{name}/events?limit=1000")).json()
    return [
        item["observation"]["content"][0]["text"]
        for item in page["items"]
        if item["kind"] == "ObservationEvent"
    ]


async def test_a_choice_is_clicked(stage: GatewayStage, anna: Visitor) -> None:
    name = await open_question(stage, anna)
    assert "Without an answer it goes on at 20" in await anna.page.inner_text(".waiting")
    await anna.page.click(".waiting button >> text=blue")
    await expect(anna, "text=Over.")
    assert await results_of(stage, name) == ["The user answers: blue"]


async def test_an_answer_is_typed_by_keyboard_alone(stage: GatewayStage, anna: Visitor) -> None:
    name = await open_question(stage, anna)
    await anna.page.keyboard.press("a")  # to the first choice
    for _ in QUESTION["choices"]:
        await anna.page.keyboard.press("Tab")
    await anna.page.keyboard.type("Green, please.")
    await anna.page.keyboard.press("Enter")
    await expect(anna, "text=Over.")
    assert await results_of(stage, name) == ["The user answers: Green, please."]


async def test_a_message_is_an_answer(stage: GatewayStage, anna: Visitor) -> None:
    name = await open_question(stage, anna)
    await anna.page.fill("#message", "Green.")
    await anna.page.press("#message", "Enter")
    await expect(anna, "text=Over.")
    assert await results_of(stage, name) == ["The user answers with the message that follows."]


async def test_a_wait_says_for_what_and_a_signal_is_seen(
    stage: GatewayStage, anna: Visitor
) -> None:
    name = await start(stage, "wait", "waiting", signal="paid")
    await anna.goto(f"/conversations/{name}")
    await expect(anna, "section.waiting >> text=Waits for the signal “paid”.")
    sent = await stage.anna.post(
        f"/v1/conversations/{name}/signals/paid", json={"data": {"amount": 12}}
    )
    assert (sent.status_code, sent.json()["taken"]) == (200, True)
    await expect(anna, "text=Over.")
    await expect(anna, 'text=Signal paid: {"amount":12}')


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
async def test_axe_finds_nothing_in_a_question(
    stage: GatewayStage, browser: Any, size: dict[str, int]
) -> None:
    async with visit(browser, stage.url, viewport=size) as visitor:
        await visitor.log_in(key_of(stage.anna))
        name = await open_question(stage, visitor)
        assert await find_violations(visitor) == []
        await visitor.goto("/")
        await expect(visitor, "text=Asks you")
        assert name in str(await visitor.page.content())
        assert await find_violations(visitor) == []
