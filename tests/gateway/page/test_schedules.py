"""Schedules on the page: created, paused, begun now and deleted, by mouse and by keyboard."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.gateway.page.browser import Visitor, expect, visit
from tests.gateway.page.conftest import key_of
from tests.gateway.stage import GatewayStage, open_gateway
from tests.harness import ConversationHarness

pytestmark = pytest.mark.page

OFFERED = {"plain": {"model": {"name": "scripted/a.json"}, "tools": ["think"]}}
DAILY = {"text": "Look at the tickets.", "cron": ["0 8 * * 1-5"], "agent": "plain"}


@pytest_asyncio.fixture
async def stage(world: ConversationHarness) -> AsyncIterator[GatewayStage]:
    """A gateway with an agent and without a worker; Anna's schedules are deleted at the end."""
    async with open_gateway(world, agents=OFFERED) as opened:
        yield opened
        for schedule in (await opened.anna.get("/v1/schedules")).json()["items"]:
            await opened.anna.delete(f"/v1/schedules/{schedule['name']}")


async def test_a_schedule_is_created_paused_resumed_and_deleted(
    stage: GatewayStage, anna: Visitor
) -> None:
    await anna.goto("/")
    await expect(anna, "h1")
    keyboard = anna.page.keyboard
    await keyboard.press("S")
    await expect(anna, "#schedule-name")
    await keyboard.press("c")
    for text in ("tickets", "Look at the tickets.", "0 8 * * 1-5"):
        await keyboard.type(text)
        await keyboard.press("Tab")
    await keyboard.press("Control+A")
    await keyboard.type("Europe/Oslo")
    await keyboard.press("Enter")
    await expect(anna, "td >> text=Europe/Oslo")
    made = (await stage.anna.get("/v1/schedules/tickets")).json()
    assert (made["definition"]["cron"], made["agent"]) == (["0 8 * * 1-5"], "plain")
    await anna.page.click("[aria-label='Pause tickets']")
    await expect(anna, "td >> text=paused")
    assert (await stage.anna.get("/v1/schedules/tickets")).json()["paused"]
    await anna.page.click("[aria-label='Resume tickets']")
    await expect(anna, "[aria-label='Pause tickets']")
    await anna.page.click("[aria-label='Begin now tickets']")
    await anna.page.click("[aria-label='Delete tickets']")
    await anna.page.click("dialog >> text=Delete it")
    await anna.page.wait_for_selector("[aria-label='Delete tickets']", state="detached")
    assert (await stage.anna.get("/v1/schedules/tickets")).status_code == 404


async def test_times_that_are_none_are_refused_and_what_was_typed_stays(anna: Visitor) -> None:
    anna.expected.append("422")
    await anna.goto("/schedules")
    await anna.page.fill("#schedule-name", "odd")
    await anna.page.fill("#schedule-text", "Look.")
    await anna.page.fill("#schedule-cron", "0 0 30 2 *")
    await anna.page.click("button:text('Create')")
    await expect(anna, "[role=alert] >> text=It never begins")
    assert await anna.page.input_value("#schedule-text") == "Look."


async def test_whoever_may_only_read_has_no_buttons(stage: GatewayStage, browser: Any) -> None:
    assert (await stage.anna.post("/v1/schedules/daily", json=DAILY)).is_success
    reader = await stage.client("anna", ["read"])
    async with visit(browser, stage.url) as visitor:
        await visitor.log_in(key_of(reader))
        await visitor.goto("/schedules")
        await expect(visitor, "h1 >> text=Schedules")
        assert await visitor.page.locator("main button").count() == 0
        assert await visitor.page.locator("#schedule-name").count() == 0
