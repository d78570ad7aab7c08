"""Memories on the page: listed, found, put and removed, by mouse and by keyboard."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.gateway.page.browser import Visitor, expect
from tests.gateway.stage import GatewayStage, open_gateway
from tests.harness import ConversationHarness

pytestmark = pytest.mark.page


@pytest_asyncio.fixture
async def stage(world: ConversationHarness) -> AsyncIterator[GatewayStage]:
    """A gateway without a worker."""
    async with open_gateway(world) as opened:
        yield opened


async def test_a_text_is_remembered_found_and_removed(stage: GatewayStage, anna: Visitor) -> None:
    await stage.anna.post("/v1/memories", json={"text": "The cat is called Mia."})
    await anna.goto("/")
    await expect(anna, "h1")
    keyboard = anna.page.keyboard
    await keyboard.press("M")
    await expect(anna, "td >> text=The cat is called Mia.")
    await keyboard.press("c")
    for text in ("Deploys happen on Tuesdays.", "deploys", "work, plans"):
        await keyboard.type(text)
        await keyboard.press("Tab")
    await keyboard.press("Enter")
    await expect(anna, "td >> text=Deploys happen on Tuesdays.")
    (kept,) = [
        memory
        for memory in (await stage.anna.get("/v1/memories")).json()["items"]
        if memory["key"] == "deploys"
    ]
    assert (kept["tags"], kept["source"]) == (["work", "plans"], "user")
    await keyboard.press("Escape")
    await keyboard.press("/")
    await keyboard.type("Tuesdays deploys")
    await keyboard.press("Enter")
    await anna.page.wait_for_selector("text=The cat is called Mia.", state="detached")
    await expect(anna, "td >> text=Deploys happen on Tuesdays.")
    await anna.page.click("[aria-label='Remove deploys']")
    await anna.page.click("dialog >> text=Remove it")
    await expect(anna, "text=Nothing is found.")
    assert (await stage.anna.get(f"/v1/memories/{kept['id']}")).status_code == 404


async def test_more_memories_are_shown_on_request(stage: GatewayStage, anna: Visitor) -> None:
    for nth in range(60):
        await stage.anna.post("/v1/memories", json={"text": f"Fact {nth}."})
    await anna.goto("/memory")
    await expect(anna, "text=Show more")
    assert await anna.page.locator("tbody tr").count() == 50
    await anna.page.click("text=Show more")
    await anna.page.wait_for_selector("text=Show more", state="detached")
    assert await anna.page.locator("tbody tr").count() == 60


async def test_a_memory_is_text_and_no_markup(stage: GatewayStage, anna: Visitor) -> None:
    text = "<img src=x onerror=alert(1)> javascript:alert(2)"
    await stage.anna.post("/v1/memories", json={"text": text})
    await anna.goto("/memory")
    await expect(anna, ".memory-text")
    assert await anna.page.inner_text(".memory-text") == text


async def test_a_text_that_is_too_long_is_refused_with_a_sentence(anna: Visitor) -> None:
    anna.expected.append("422")
    await anna.goto("/memory")
    await anna.page.fill("#memory-text", "a" * 70_000)
    await anna.page.click("button:text('Remember')")
    await expect(anna, "[role=alert] >> text=65,536 bytes at most")
    assert len(await anna.page.input_value("#memory-text")) == 70_000
