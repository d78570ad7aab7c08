"""What others share, on the page: found, opened, forked, and gone once it is taken back."""

from typing import Any

import pytest

from tests.gateway.page.batch_stories import start_batch, wait_for_batch
from tests.gateway.page.browser import Visitor, expect, until, visit
from tests.gateway.page.conftest import key_of
from tests.gateway.page.test_accessibility import find_violations
from tests.gateway.stage import GatewayStage
from tests.harness import text_answer

pytestmark = pytest.mark.page

FOUR = {"content": "4"}


async def test_a_shared_conversation_is_found_and_forked(stage: GatewayStage, browser: Any) -> None:
    name = await stage.start(text_answer("One."), text_answer("Two."), text="Anna's task")
    await stage.wait_until(name, "finished")
    path = f"/v1/conversations/{name}"
    async with visit(browser, stage.url) as ben:
        await ben.log_in(key_of(stage.ben))
        await ben.goto("/")
        await ben.page.click(".filters >> text=Shared with me")
        await expect(ben, "text=Nobody shares a conversation with you.")
        await stage.anna.put(f"{path}/grants/ben", json={"access": "read"})
        await ben.page.click(".filters >> text=Shared with me")
        await expect(ben, ".conversations li >> text=Anna's task")
        assert "shared by anna" in await ben.page.inner_text(".conversations")
        assert await find_violations(ben) == []
        await ben.page.click(".filters >> text=All")
        await until(ben, "document.querySelectorAll('.conversations li').length === 0")
        await ben.page.click(".filters >> text=Shared with me")
        await ben.page.click(".conversations a")
        await expect(ben, "text=shared by anna (read)")
        await ben.page.click("button:text('More')")
        assert await ben.page.locator("dialog >> text=Delete").count() == 0
        await ben.page.click("dialog >> button:has-text('Fork')")
        await until(ben, f"!location.href.includes({name!r})")
        await expect(ben, ".composer")
        await expect(ben, "article.user >> text=Anna's task")
        await ben.page.fill("#message", "Go on.")
        await ben.page.keyboard.press("Enter")
        await expect(ben, "text=Two.")
        await stage.anna.delete(f"{path}/grants/ben")
        await ben.goto("/")
        await expect(ben, ".conversations li")
        await ben.page.click(".filters >> text=Shared with me")
        await expect(ben, "text=Nobody shares a conversation with you.")


async def test_a_batch_is_shared_and_read(stage: GatewayStage, anna: Visitor, browser: Any) -> None:
    await start_batch(stage, "sums", 3, FOUR)
    await wait_for_batch(stage, "sums", "finished")
    await anna.goto("/batches/sums")
    await anna.page.click("button:text('Share')")
    await anna.page.fill("#share-user", "ben")
    await anna.page.keyboard.press("Enter")
    await expect(anna, "dialog li >> text=may read it")
    address = await anna.page.inner_text("dialog code")
    assert address == f"{stage.url}/batches/sums?owner=anna"
    assert await find_violations(anna) == []
    async with visit(browser, stage.url) as ben:
        await ben.log_in(key_of(stage.ben))
        await ben.goto("/batches")
        await expect(ben, "h2 >> text=Shared with me")
        assert await find_violations(ben) == []
        await ben.page.click(".batches a")
        await expect(ben, "text=shared by anna (read)")
        assert await ben.page.locator("button:text('Share')").count() == 0
        await ben.page.click("tr:has-text('sum-02') >> text=conversation")
        await expect(ben, "article.user >> text=What is 2 + 2?")
        await expect(ben, "text=shared by anna (read)")
        await anna.page.click("dialog [aria-label='Take it back from ben']")
        await anna.page.wait_for_selector("dialog li", state="detached")
        ben.expected.append("404")
        await ben.goto("/batches/sums?owner=anna")
        await expect(ben, ".failure")
