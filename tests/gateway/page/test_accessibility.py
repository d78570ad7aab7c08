"""The page for everybody: axe finds nothing, in both colour schemes and at the width of a phone."""

import json
from typing import Any

import pytest

from perdure.agent.policies import Confirmation
from tests.gateway.page import stories
from tests.gateway.page.browser import DESKTOP, PHONE, Visitor, expect, visit
from tests.gateway.page.conftest import key_of
from tests.gateway.page.environment import packages
from tests.gateway.stage import GatewayStage
from tests.harness import text_answer, tool_call_answer

pytestmark = pytest.mark.page

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
PLAIN = ("/", "/new", "/schedules", "/webhooks", "/agents", "/memory", "/keys")
TOOLS = ("terminal", "file_editor", "think", "finish")


async def find_violations(visitor: Visitor) -> list[str]:
    """Run axe on the page; return what is wrong, with the elements."""
    script = next(packages().glob("axe_playwright_python/**/axe.min.js")).read_text()
    await visitor.page.evaluate(script)
    options = json.dumps({"runOnly": RULES, "resultTypes": ["violations"]})
    found = await visitor.page.evaluate(f"() => axe.run(document, {options})")
    return [
        f"{violation['id']}: {node['html'][:200]} {node['failureSummary'][:300]}"
        for violation in found["violations"]
        for node in violation["nodes"]
    ]


async def fill(stage: GatewayStage) -> tuple[str, str]:
    """Have a conversation that is over, and one that asks; return their ids."""
    done = await stage.start(*stories.bug_fix(), text=stories.TASK, tools=TOOLS)
    call = tool_call_answer(("terminal", {"command": "make release"}))
    always = Confirmation(policy="always")
    asking = await stage.start(
        call, text_answer("Over."), tools=("terminal",), confirmation=always, text="Release it."
    )
    await stage.wait_until(done, "finished")
    await stage.wait_until(asking, "waiting_for_confirmation")
    return done, asking


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_nothing(
    stage: GatewayStage, browser: Any, scheme: str, size: dict[str, int]
) -> None:
    done, asking = await fill(stage)
    await stage.anna.post("/v1/memories", json={"text": "A fact.", "tags": ["work"]})
    await stage.anna.put("/v1/agents/mine", json={"model": {"name": "scripted/a.json"}})
    daily = {"text": "Look.", "cron": ["0 8 * * 1-5"], "agent": "mine"}
    assert (await stage.anna.post("/v1/schedules/daily", json=daily)).is_success
    async with visit(browser, stage.url, color_scheme=scheme, viewport=size) as visitor:
        visitor.expected.append("401")
        await visitor.goto("/")
        await expect(visitor, "#key")
        assert await find_violations(visitor) == []
        await visitor.log_in(key_of(stage.anna))
        for path, selector in (
            ("/", ".conversations li"),
            ("/new", "#agent"),
            ("/keys", "table.data"),
            ("/schedules", "table.data"),
            ("/webhooks", "#webhook-url"),
            ("/agents", "table.data"),
            ("/memory", "table.data"),
            (f"/conversations/{asking}", ".waiting.asks"),
            (f"/conversations/{done}", "text=Both tests pass."),
        ):
            await visitor.goto(path)
            await expect(visitor, selector)
            assert await find_violations(visitor) == [], path
        await stage.anna.delete("/v1/schedules/daily")
        await visitor.page.keyboard.press("e")
        await expect(visitor, "pre.diff")
        assert await find_violations(visitor) == []
        for key, selector in (("?", "dl.keys"), ("t", ".timeline"), ("w", ".files"), ("s", "form")):
            await visitor.page.keyboard.press(key)
            await expect(visitor, f"dialog {selector}")
            assert await find_violations(visitor) == [], key
            await visitor.page.keyboard.press("Escape")
            await visitor.page.wait_for_selector("dialog", state="detached")


async def test_nothing_is_wider_than_a_phone(stage: GatewayStage, browser: Any) -> None:
    done, asking = await fill(stage)
    async with visit(browser, stage.url, viewport=PHONE, has_touch=True) as visitor:
        await visitor.log_in(key_of(stage.anna))
        for path in (*PLAIN, f"/conversations/{asking}", f"/conversations/{done}"):
            await visitor.goto(path)
            await expect(visitor, "h1")
            wide = await visitor.page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, path
        await visitor.page.tap("#seq-12 .menu-button")
        await visitor.page.tap("dialog >> text=Raw JSON")
        await expect(visitor, "dialog pre.code")


async def test_a_screen_reader_is_told_where_it_is_and_what_changes(
    stage: GatewayStage, browser: Any
) -> None:
    _, asking = await fill(stage)
    async with visit(browser, stage.url) as visitor:
        await visitor.log_in(key_of(stage.anna))
        await visitor.goto(f"/conversations/{asking}")
        await expect(visitor, ".waiting.asks")
        page = visitor.page
        assert await page.get_by_role("navigation", name="Main").count() == 1
        assert await page.get_by_role("main").count() == 1
        assert await page.get_by_role("feed", name="Events").count() == 1
        assert await page.get_by_role("heading", level=1).count() == 1
        assert await page.get_by_role("region", name="Waits for").count() == 1
        assert await page.get_by_role("article", name="Tool terminal, event 4").count() == 1
        await page.keyboard.press("a")
        await expect(visitor, "text=Over.")
        await page.wait_for_selector("[role=status][aria-live] >> text=Finished", state="attached")
        await page.keyboard.press("Escape")
        await page.evaluate("document.activeElement.blur()")
        await page.keyboard.press("Tab")
        assert await page.evaluate("document.activeElement.textContent") == "Skip to the content"
