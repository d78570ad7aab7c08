"""Agents, settings and secrets on the page: seen and changed, by mouse and by keyboard."""

from collections.abc import AsyncIterator
from copy import copy
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio
from pydantic import SecretStr

from tests.gateway.page.browser import Visitor, expect, visit
from tests.gateway.page.conftest import key_of
from tests.gateway.stage import GatewayStage, open_gateway
from tests.harness import ConversationHarness
from tests.secrets.keys import key_setting

pytestmark = pytest.mark.page

VALUE = "ghp_canary-of-the-page-0123456789"
OFFERED = {"plain": {"model": {"name": "scripted/a.json"}, "tools": ["think"]}}
REVIEWER = '{"model": {"name": "scripted/a.json"}, "description": "reviews changes"}'


@pytest_asyncio.fixture
async def stage(world: ConversationHarness) -> AsyncIterator[GatewayStage]:
    """A gateway with an agent and with keys for secrets, and without a worker."""
    client = copy(world.client)
    client.secret_keys = SecretStr(key_setting("one"))
    async with open_gateway(replace(world, client=client), agents=OFFERED) as opened:
        yield opened


async def test_an_agent_is_created_changed_and_deleted(stage: GatewayStage, anna: Visitor) -> None:
    await anna.goto("/")
    await expect(anna, "h1")
    keyboard = anna.page.keyboard
    await keyboard.press("A")
    await expect(anna, "h1 >> text=Agents")
    await keyboard.press("c")
    await expect(anna, "#agent-name:focus")
    await keyboard.type("reviewer")
    await keyboard.press("Tab")
    await keyboard.insert_text(REVIEWER)
    await keyboard.press("Tab")
    await keyboard.press("Enter")
    await expect(anna, "td >> text=reviews changes")
    kept = (await stage.anna.get("/v1/agents/reviewer")).json()
    assert kept["definition"] == {
        "model": {"name": "scripted/a.json"},
        "description": "reviews changes",
    }
    await anna.page.click("[aria-label='Change reviewer']")
    await expect(anna, "#agent-definition:focus")
    shown = await anna.page.input_value("#agent-definition")
    await anna.page.fill("#agent-definition", shown.replace("changes", "releases"))
    await anna.page.click("dialog >> text=Save")
    await expect(anna, "td >> text=reviews releases")
    await anna.page.click("[aria-label='Delete reviewer']")
    await anna.page.click("dialog >> text=Delete it")
    await anna.page.wait_for_selector("text=reviews releases", state="detached")
    assert (await stage.anna.get("/v1/agents/reviewer")).status_code == 404


async def test_an_agent_of_the_installation_is_extended(stage: GatewayStage, anna: Visitor) -> None:
    await anna.goto("/agents")
    await anna.page.click("[aria-label='Extend plain']")
    assert await anna.page.input_value("#agent-definition") == '{\n  "extends": "plain"\n}'
    await anna.page.fill("#agent-name", "mine")
    await anna.page.keyboard.press("Enter")
    await expect(anna, "td >> text=mine")
    assert (await stage.anna.get("/v1/agents/mine")).json()["tools"] == ["think"]
    assert await anna.page.locator("[aria-label='Delete plain']").count() == 0


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "The agent is no JSON:"),
        ("[1]", "The agent is no JSON object: write"),
        ('{"modell": 1}', "modell"),
        ('{"extends": "nobody"}', "nobody"),
    ],
)
async def test_an_agent_that_is_none_is_refused_and_what_was_typed_stays(
    anna: Visitor, text: str, sentence: str
) -> None:
    anna.expected.append("422|404|400")
    await anna.goto("/agents")
    await anna.page.click("text=Create an agent")
    await anna.page.fill("#agent-name", "odd")
    await anna.page.fill("#agent-definition", text)
    await anna.page.click("dialog >> text=Save")
    await expect(anna, f"dialog [role=alert] >> text={sentence}")
    assert await anna.page.input_value("#agent-definition") == text
    assert await anna.page.input_value("#agent-name") == "odd"


async def test_settings_of_all_agents_are_changed(stage: GatewayStage, anna: Visitor) -> None:
    anna.expected.append("422")
    await anna.goto("/agents")
    await expect(anna, "#settings")
    await anna.page.keyboard.press("g")
    await anna.page.keyboard.press("Control+A")
    await anna.page.keyboard.insert_text('{"model": {"temperature": 0.5}}')
    await anna.page.click("text=Save the settings")
    await expect(anna, "[role=status] >> text=Saved.")
    settings = (await stage.anna.get("/v1/settings")).json()
    assert settings == {"agent": {"model": {"temperature": 0.5}}}
    await anna.page.fill("#settings", '{"nonsense": true}')
    await anna.page.click("text=Save the settings")
    await expect(anna, "[role=alert] >> text=nonsense")
    assert (await stage.anna.get("/v1/settings")).json() == settings


async def test_a_secret_is_handed_in_and_removed_and_never_shown(
    stage: GatewayStage, anna: Visitor
) -> None:
    await anna.goto("/agents")
    await expect(anna, "#secret-name")
    await anna.page.keyboard.press("s")
    for text in ("TICKETS", VALUE, "of the tracker"):
        await anna.page.keyboard.type(text)
        await anna.page.keyboard.press("Tab")
    await anna.page.keyboard.press("Enter")
    await expect(anna, "td >> text=of the tracker")
    assert [it["name"] for it in (await stage.anna.get("/v1/secrets")).json()["items"]] == [
        "TICKETS"
    ]
    assert VALUE not in await anna.page.content()
    assert await anna.page.input_value("#secret-value") == ""
    await anna.page.click("[aria-label='Remove TICKETS']")
    await anna.page.click("dialog >> text=Remove it")
    await expect(anna, "text=There is no secret yet.")
    assert (await stage.anna.get("/v1/secrets")).json()["items"] == []


async def test_whoever_may_only_read_changes_no_agent(stage: GatewayStage, browser: Any) -> None:
    reader = await stage.client("anna", ["read"])
    async with visit(browser, stage.url) as visitor:
        await visitor.log_in(key_of(reader))
        await visitor.goto("/agents")
        await expect(visitor, "table.data")
        assert await visitor.page.locator("text=Create an agent").count() == 0
        assert await visitor.page.locator("#secret-name").count() == 0
        assert await visitor.page.locator("main button").count() == 0
