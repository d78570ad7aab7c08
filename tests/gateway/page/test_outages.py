"""The page through outages: nothing is missing, nothing is twice, and two tabs agree."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from perdure.gateway.gateway import Gateway
from perdure.settings.settings import Settings
from tests.gateway.page.browser import Visitor, expect, until, visit
from tests.gateway.page.conftest import key_of
from tests.gateway.stage import GatewayStage, serve_gateway
from tests.harness import text_answer

pytestmark = pytest.mark.page

OFFLINE_SECONDS = 10.0

SHOWN = """() => [...document.querySelectorAll("article[data-seq]:not(.draft)")]
  .map((row) => `${row.dataset.seq} ${row.querySelector(".content")?.textContent.trim()}`)"""


async def shown_rows(page: Any) -> list[str]:
    """Return the slots and texts of the rows on a page."""
    rows: list[str] = await page.evaluate(SHOWN)
    return rows


async def answers_of(stage: GatewayStage, count: int) -> str:
    """Start a conversation whose model has that many answers, and wait for the first."""
    name = await stage.start(*(text_answer(f"Answer {number}.") for number in range(count)))
    await stage.wait_until(name, "finished")
    return name


async def send(stage: GatewayStage, name: str, text: str) -> None:
    """Send a message, and wait until its turn is over."""
    sent = await stage.anna.post(f"/v1/conversations/{name}/messages", json={"text": text})
    seq = sent.json()["seq"]
    while True:
        shown = (await stage.anna.get(f"/v1/conversations/{name}")).json()
        if shown["status"]["status"] == "finished" and shown["status"]["next_seq"] > seq + 1:
            return
        await asyncio.sleep(0.1)


async def expected_rows(stage: GatewayStage, name: str) -> list[str]:
    """Return the slots and texts of the messages in the log, in order."""
    page = (await stage.anna.get(f"/v1/conversations/{name}/events?limit=1000")).json()
    return [
        f"{item['seq']} {item['llm_message']['content'][0]['text']}"
        for item in page["items"]
        if item["kind"] == "MessageEvent"
    ]


@asynccontextmanager
async def offline(visitor: Visitor) -> AsyncIterator[None]:
    visitor.expected += ["ERR_INTERNET_DISCONNECTED", "ERR_NETWORK"]
    await visitor.context.set_offline(True)
    yield
    await visitor.context.set_offline(False)


async def test_a_page_without_a_network_for_10_seconds_misses_nothing(
    stage: GatewayStage, anna: Visitor
) -> None:
    name = await answers_of(stage, 6)
    await anna.goto(f"/conversations/{name}")
    await expect(anna, "text=Answer 0.")
    async with offline(anna):
        await expect(anna, "text=Offline")
        for number in range(1, 4):
            await send(stage, name, f"Question {number}")
        await asyncio.sleep(OFFLINE_SECONDS)
        assert "Answer 0." in "".join(await shown_rows(anna.page))
    await expect(anna, "text=Answer 3.")
    await send(stage, name, "Question 4")
    await expect(anna, "text=Answer 4.")
    assert await shown_rows(anna.page) == await expected_rows(stage, name)


async def test_a_message_that_could_not_be_sent_stays_in_its_field(
    stage: GatewayStage, anna: Visitor
) -> None:
    name = await answers_of(stage, 2)
    await anna.goto(f"/conversations/{name}")
    await expect(anna, "text=Answer 0.")
    async with offline(anna):
        await anna.page.fill("#message", "Not lost")
        await anna.page.keyboard.press("Enter")
        await expect(anna, "text=The gateway does not answer.")
        assert await anna.page.input_value("#message") == "Not lost"
    await anna.page.focus("#message")
    await anna.page.keyboard.press("Enter")
    await expect(anna, "text=Answer 1.")
    assert await shown_rows(anna.page) == await expected_rows(stage, name)


async def test_a_gateway_that_was_lost_is_found_again(stage: GatewayStage, browser: Any) -> None:
    name = await answers_of(stage, 3)
    settings = Settings(gateway_trusted=True)
    async with AsyncExitStack() as visits:
        async with serve_gateway(Gateway(stage.harness.client, settings)) as url:
            anna = await visits.enter_async_context(visit(browser, url))
            await anna.log_in(key_of(stage.anna))
            await anna.goto(f"/conversations/{name}")
            await expect(anna, "text=Answer 0.")
            anna.expected += ["ERR_CONNECTION", "ERR_INCOMPLETE", "ERR_EMPTY"]
        await expect(anna, "text=Connection lost")
        await send(stage, name, "And now?")
        port = int(url.rsplit(":", 1)[1])
        async with serve_gateway(Gateway(stage.harness.client, settings), port=port):
            await expect(anna, "text=Answer 1.")
            assert await shown_rows(anna.page) == await expected_rows(stage, name)
            await until(anna, "document.querySelector('.connection') === null")


async def test_two_tabs_agree(stage: GatewayStage, anna: Visitor) -> None:
    name = await answers_of(stage, 4)
    await anna.goto(f"/conversations/{name}")
    await expect(anna, "text=Answer 0.")
    other = await anna.context.new_page()
    await anna.watch(other)
    await other.goto(anna.page.url)
    await other.wait_for_selector("text=Answer 0.")
    await other.fill("#message", "From the other tab")
    await other.keyboard.press("Enter")
    await expect(anna, "text=Answer 1.")
    await anna.page.fill("#message", "From the first tab")
    await anna.page.keyboard.press("Enter")
    await other.wait_for_selector("text=Answer 2.")
    await expect(anna, "text=Answer 2.")
    assert await shown_rows(other) == await shown_rows(anna.page)
    assert await shown_rows(other) == await expected_rows(stage, name)


async def test_a_hidden_tab_gives_its_connection_back_and_catches_up(
    stage: GatewayStage, anna: Visitor
) -> None:
    """A browser has six connections to a host, for all its tabs."""
    name = await answers_of(stage, 3)
    await anna.goto(f"/conversations/{name}")
    await expect(anna, "text=Answer 0.")
    await anna.page.evaluate(HIDE)
    await until(anna, "document.querySelector('.connection')?.textContent.includes('lost')")
    await send(stage, name, "And now?")
    assert "Answer 1." not in "".join(await shown_rows(anna.page))
    await anna.page.evaluate(SHOW)
    await expect(anna, "text=Answer 1.")
    assert await shown_rows(anna.page) == await expected_rows(stage, name)


HIDE = """() => {
  Object.defineProperty(document, "hidden", { value: true, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""
SHOW = HIDE.replace("value: true", "value: false")
