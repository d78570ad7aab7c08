"""Logging in and out, and a user's API keys."""

from datetime import timedelta
from typing import Any

import pytest

from perdure.storage.credentials.tokens import create_token
from tests.gateway.page.browser import Visitor, expect, until, visit
from tests.gateway.page.conftest import key_of
from tests.gateway.stage import GatewayStage

pytestmark = pytest.mark.page


async def test_a_key_logs_in_and_a_session_ends(stage: GatewayStage, browser: Any) -> None:
    async with visit(browser, stage.url) as visitor:
        visitor.expected.append("401")
        await visitor.goto("/keys")
        await expect(visitor, "#key")
        await visitor.page.keyboard.type("pk_0123456789abcdef_no-key-of-anybody")
        await visitor.page.keyboard.press("Enter")
        await expect(visitor, "[role=alert] >> text=no valid key")
        await visitor.page.fill("#key", key_of(stage.anna))
        await visitor.page.click("button:text('Log in')")
        await expect(visitor, ".who >> text=anna")
        await expect(visitor, "h1 >> text=API keys")
        assert await visitor.page.evaluate("document.cookie") == ""
        await visitor.page.click("text=Log out")
        await expect(visitor, "#key")
        await visitor.page.reload()
        await expect(visitor, "#key")


async def test_a_link_logs_in_once(stage: GatewayStage, browser: Any) -> None:
    store, lifetime = stage.gateway.store, timedelta(minutes=5)
    code = await create_token(store, "login", "anna", ("read", "write", "admin"), lifetime)
    async with visit(browser, stage.url) as visitor:
        await visitor.goto(f"/#login={code}")
        await expect(visitor, ".who >> text=anna")
        assert "login" not in visitor.page.url
    async with visit(browser, stage.url) as other:
        other.expected.append("401")
        await other.goto(f"/#login={code}")
        await expect(other, "[role=alert] >> text=used before")


async def test_a_key_is_created_shown_once_and_revoked(stage: GatewayStage, anna: Visitor) -> None:
    await anna.goto("/")
    await expect(anna, "h1")
    await anna.page.keyboard.press("K")
    await expect(anna, "h1 >> text=API keys")
    await anna.page.keyboard.press("n")
    await anna.page.keyboard.type("for the nightly run")
    await anna.page.keyboard.press("Enter")
    await expect(anna, "dialog .secret")
    secret = await anna.page.inner_text("dialog .secret")
    anonymous = stage.client_with(secret)
    me = (await anonymous.get("/v1/me")).json()
    assert (me["user_id"], sorted(me["scopes"])) == ("anna", ["read", "write"])
    await anna.page.click("dialog >> text=Done")
    await expect(anna, "td >> text=for the nightly run")
    assert secret not in await anna.page.content()
    await anna.page.click("[aria-label='Revoke for the nightly run']")
    await anna.page.click("dialog >> text=Revoke it")
    await until(anna, "document.querySelector('tr.revoked') !== null")
    assert (await anonymous.get("/v1/me")).status_code == 401


async def test_whoever_may_only_read_has_no_buttons_to_write(
    stage: GatewayStage, browser: Any
) -> None:
    reader = await stage.client("anna", ["read"])
    async with visit(browser, stage.url) as visitor:
        await visitor.log_in(key_of(reader))
        await visitor.goto("/")
        await expect(visitor, "text=No conversation yet.")
        assert await visitor.page.locator("text=New conversation").count() == 0
        await visitor.goto("/keys")
        await expect(visitor, "text=scope admin")
