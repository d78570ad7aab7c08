"""Webhooks on the page: created, tested, given a new secret and deleted; addresses, too."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from pydantic import SecretStr

from tests.gateway.page.browser import Visitor, expect, visit
from tests.gateway.page.conftest import key_of
from tests.gateway.stage import GatewayStage, open_gateway
from tests.harness import ConversationHarness, text_answer
from tests.secrets.keys import key_setting

pytestmark = pytest.mark.page

URL = "https://8.8.8.8/hooks"

CREATE_WEBHOOK, CREATE_ADDRESS = (
    f"form:has(#{field}) >> button:text('Create')" for field in ("webhook-url", "address-signal")
)


@pytest_asyncio.fixture
async def stage(world: ConversationHarness) -> AsyncIterator[GatewayStage]:
    """A gateway with keys for secrets and without a worker."""
    async with open_gateway(world) as opened:
        opened.gateway.client.secret_keys = SecretStr(key_setting("first"))
        yield opened


async def list_webhooks(stage: GatewayStage) -> list[dict[str, Any]]:
    return list((await stage.anna.get("/v1/webhooks")).json()["items"])


async def test_a_webhook_is_created_tested_and_deleted(stage: GatewayStage, anna: Visitor) -> None:
    await anna.goto("/")
    await expect(anna, "h1")
    keyboard = anna.page.keyboard
    await keyboard.press("H")
    await expect(anna, "#webhook-url")
    await keyboard.press("c")
    await keyboard.type(URL)
    await anna.page.uncheck("[value=question]")
    await anna.page.click(CREATE_WEBHOOK)
    await expect(anna, "dialog code.secret >> text=whsec_")
    await anna.page.click("dialog >> text=Done")
    await expect(anna, f"td >> text={URL}")
    [made] = await list_webhooks(stage)
    assert (made["url"], made["events"]) == (URL, ["turn_end", "approval", "error"])
    await anna.page.click(f"[aria-label='Test {URL}']")
    await expect(anna, "h2 >> text=Last deliveries")
    await anna.page.click(f"[aria-label='New secret {URL}']")
    await anna.page.click("dialog >> text=Make one")
    await expect(anna, "dialog code.secret >> text=whsec_")
    await anna.page.click("dialog >> text=Done")
    await anna.page.click(f"[aria-label='Delete {URL}']")
    await anna.page.click("dialog >> text=Delete it")
    await anna.page.wait_for_selector(f"[aria-label='Delete {URL}']", state="detached")
    assert await list_webhooks(stage) == []


async def test_a_private_address_is_refused_and_what_was_typed_stays(anna: Visitor) -> None:
    anna.expected.append("422")
    await anna.goto("/webhooks")
    await anna.page.fill("#webhook-url", "http://127.0.0.1:8080/")
    await anna.page.click(CREATE_WEBHOOK)
    await expect(anna, "[role=alert] >> text=has a private address")
    assert await anna.page.input_value("#webhook-url") == "http://127.0.0.1:8080/"


async def test_whoever_may_only_read_has_no_buttons_that_change(
    stage: GatewayStage, browser: Any
) -> None:
    assert (await stage.anna.post("/v1/webhooks", json={"url": URL})).is_success
    reader = await stage.client("anna", ["read"])
    async with visit(browser, stage.url) as visitor:
        await visitor.log_in(key_of(reader))
        await visitor.goto("/webhooks")
        await expect(visitor, "h1 >> text=Webhooks")
        await expect(visitor, f"[aria-label='Deliveries {URL}']")
        assert await visitor.page.locator("main button").count() == 1
        assert await visitor.page.locator("#webhook-url").count() == 0
        assert await visitor.page.locator("#address-signal").count() == 0


async def test_an_address_is_created_and_revoked(stage: GatewayStage, anna: Visitor) -> None:
    name = await stage.start(text_answer("Hello."))
    await anna.goto("/webhooks")
    await expect(anna, "h2 >> text=Create an address")
    await anna.page.fill("#address-conversation", name)
    await anna.page.fill("#address-signal", "paid")
    await anna.page.check("[name=signed]")
    await anna.page.click(CREATE_ADDRESS)
    await expect(anna, f"dialog code.secret >> text={stage.url}/v1/posts/")
    await anna.page.click("dialog >> text=Done")
    await expect(anna, "dialog code.secret >> text=whsec_")
    await anna.page.click("dialog >> text=Done")
    [made] = (await stage.anna.get("/v1/addresses")).json()["items"]
    assert (made["conversation_id"], made["signal"], made["signed"]) == (name, "paid", True)
    await expect(anna, "td >> text=the signal paid, signed")
    await anna.page.click(f"[aria-label='Revoke {made['id']}']")
    await anna.page.click("dialog >> text=Revoke it")
    await expect(anna, "p >> text=There is no address yet.")
    assert (await stage.anna.get("/v1/addresses")).json()["items"] == []
