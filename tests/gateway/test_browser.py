"""Browsers: one-time logins, sessions, tickets, and pages of other sites."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from perdure.gateway.identity.principal import Principal
from perdure.gateway.identity.sessions import Sessions
from perdure.gateway.identity.sites import Site
from perdure.storage.credentials.tokens import create_token, delete_expired_tokens, use_token
from tests.gateway.stage import GatewayStage, open_gateway, serve_gateway
from tests.harness import ConversationHarness, text_answer
from tests.storage.memory import MemoryStore

OWN = {"Sec-Fetch-Site": "same-origin"}


async def log_in(stage: GatewayStage, **headers: str) -> httpx.AsyncClient:
    """Return a browser of Anna's, with a session."""
    code = await create_token(
        stage.gateway.store, "login", "anna", ["read", "write", "admin"], timedelta(minutes=1)
    )
    browser = stage.client_with(None)
    done = await browser.post("/v1/login", json={"code": code}, headers=headers or OWN)
    assert done.status_code == 200, done.text
    assert done.json()["user_id"] == "anna"
    return browser


@pytest.mark.long
async def test_a_one_time_login_begins_a_session_once(idle_stage: GatewayStage) -> None:
    code = await create_token(
        idle_stage.gateway.store, "login", "anna", ["read"], timedelta(minutes=1)
    )
    browser, second = idle_stage.client_with(None), idle_stage.client_with(None)
    done = await browser.post("/v1/login", json={"code": code}, headers=OWN)
    cookie = done.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "Path=/" in cookie
    assert "Domain" not in cookie
    assert (await browser.get("/v1/me")).json()["scopes"] == ["read"]
    again = await second.post("/v1/login", json={"code": code}, headers=OWN)
    assert again.status_code == 401
    assert (await second.get("/v1/me")).status_code == 401


@pytest.mark.long
async def test_a_session_ends_with_a_logout_at_every_gateway(idle_stage: GatewayStage) -> None:
    browser = await log_in(idle_stage)
    async with serve_gateway(idle_stage.gateway) as other:
        cookies = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
        stolen = {
            "Cookie": cookies.replace(idle_stage.url.rpartition(":")[2], other.rpartition(":")[2])
        }
        elsewhere = idle_stage.client_with(None)
        assert (await elsewhere.get(f"{other}/v1/me", headers=stolen)).status_code == 200
        assert (await browser.post("/v1/logout", headers=OWN)).status_code == 204
        assert (await elsewhere.get(f"{other}/v1/me", headers=stolen)).status_code == 401
    assert browser.cookies == httpx.Cookies()


async def test_a_session_ends_with_the_key_that_it_began_with(idle_stage: GatewayStage) -> None:
    made = (await idle_stage.anna.post("/v1/keys", json={"name": "page"})).json()
    browser = idle_stage.client_with(None)
    done = await browser.post("/v1/login", json={"key": made["secret"]}, headers=OWN)
    assert done.json()["scopes"] == ["read", "write"]
    assert (await browser.get("/v1/me")).status_code == 200
    await idle_stage.anna.delete(f"/v1/keys/{made['key']['id']}")
    assert (await browser.get("/v1/me")).status_code == 401


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (OWN, 204),
        ({"Sec-Fetch-Site": "none"}, 204),
        ({"Origin": "{url}"}, 204),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site", "Origin": "{url}"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Origin": "{url}"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "{url}.evil.example"}, 403),
        ({}, 403),
    ],
)
async def test_only_a_page_of_ours_changes_anything_by_a_session(
    idle_stage: GatewayStage, headers: dict[str, str], status: int
) -> None:
    browser = await log_in(idle_stage)
    sent = {name: value.replace("{url}", idle_stage.url) for name, value in headers.items()}
    done = await browser.post("/v1/logout", headers=sent)
    assert done.status_code == status
    if status == 403:
        assert done.json()["code"] == "other_site"
        assert (await browser.get("/v1/me", headers=sent)).status_code == 200


async def test_another_site_cannot_log_anybody_in(idle_stage: GatewayStage) -> None:
    made = (await idle_stage.ben.post("/v1/keys", json={"name": "bait"})).json()
    for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        done = await idle_stage.client_with(None).post(
            "/v1/login", json={"key": made["secret"]}, headers=headers
        )
        assert (done.status_code, "set-cookie" in done.headers) == (403, False)
    form = await idle_stage.client_with(None).post("/v1/login", data={"key": made["secret"]})
    assert form.status_code == 422
    for body in ({}, {"key": made["secret"], "code": "x"}, {"code": "none"}):
        wrong = await idle_stage.client_with(None).post("/v1/login", json=body)
        assert wrong.status_code in (401, 422)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:80", "", "169.254.1.1"])
async def test_a_name_that_was_bound_to_this_machine_is_refused(
    idle_stage: GatewayStage, host: str
) -> None:
    refused = await idle_stage.anna.get("/v1/me", headers={"Host": host})
    assert refused.status_code in (400, 421)
    for name in ("localhost", "127.0.0.1:1", "[::1]:8700"):
        assert (await idle_stage.anna.get("/v1/me", headers={"Host": name})).status_code == 200


async def open_socket(url: str, headers: dict[str, str]) -> Any:
    """Return the first frame of a socket, or the code that it was closed with."""
    async with connect(url.replace("http", "ws", 1), additional_headers=headers) as socket:
        try:
            frame = await socket.recv()
        except ConnectionClosed as closed:
            return closed.rcvd and closed.rcvd.code
        return frame


@pytest.mark.long
async def test_a_ticket_opens_one_socket(stage: GatewayStage) -> None:
    name = await stage.start(text_answer("It is 5."))
    browser = await log_in(stage)
    made = await browser.post("/v1/tickets", headers=OWN)
    assert made.status_code == 201
    assert made.json()["expires_in"] == 30
    url = f"{stage.url}/v1/conversations/{name}/socket"
    ticket = made.json()["ticket"]
    first = await open_socket(f"{url}?ticket={ticket}", {"Origin": "https://elsewhere.example"})
    assert '"sync"' in first
    for secret in (ticket, ticket[:-1] + "x", "", "0000000000." + "a" * 43):
        assert '"unauthorized"' in await open_socket(f"{url}?ticket={secret}", {})
    request = await browser.get("/v1/me", params={"ticket": ticket})
    assert request.status_code == 200  # by its cookie
    assert (await stage.client_with(None).get(f"/v1/me?ticket={ticket}")).status_code == 401


@pytest.mark.long
async def test_a_session_opens_sockets_of_our_own_pages_alone(stage: GatewayStage) -> None:
    name = await stage.start(text_answer("It is 5."))
    browser = await log_in(stage)
    url = f"{stage.url}/v1/conversations/{name}/socket"
    cookie = {"Cookie": "; ".join(f"{name}={value}" for name, value in browser.cookies.items())}
    assert '"sync"' in await open_socket(url, {**cookie, "Origin": stage.url})
    for headers in ({}, {"Origin": "https://evil.example"}, {"Origin": "null"}):
        assert '"other_site"' in await open_socket(url, {**cookie, **headers})


@pytest.mark.long
async def test_a_secure_site_has_a_cookie_that_no_other_host_sets(
    world: ConversationHarness,
) -> None:
    async with open_gateway(world, gateway_url="https://perdure.example") as stage:
        headers = {"Host": "perdure.example", "Origin": "https://perdure.example"}
        code = await create_token(
            stage.gateway.store, "login", "anna", ["read"], timedelta(minutes=1)
        )
        browser = stage.client_with(None)
        done = await browser.post("/v1/login", json={"code": code}, headers=headers)
        assert done.headers["set-cookie"].startswith("__Host-perdure=")
        assert "Secure" in done.headers["set-cookie"]
        assert "max-age" in done.headers["strict-transport-security"]
        wrong = await browser.get("/v1/me", headers={"Host": "other.example"})
        assert wrong.status_code == 421
        probe = await browser.get("/health", headers={"Host": "10.0.0.7:8700"})
        assert probe.status_code == 200, "monitors know machines by their addresses"


def test_the_hosts_of_a_site() -> None:
    public = Site("https://perdure.example", is_local=False)
    assert public.knows_host("Perdure.example")
    assert not public.knows_host("127.0.0.1")
    assert Site(None, is_local=False).knows_host("anything.example")
    assert not Site(None, is_local=True).knows_host("anything.example")


@pytest.mark.long
async def test_pages_of_allowed_sites_may_ask_with_a_key_and_others_may_not(
    world: ConversationHarness,
) -> None:
    ask = {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization",
    }
    async with open_gateway(world, gateway_origins=("https://app.example",)) as stage:
        good = {"Origin": "https://app.example"}
        allowed = await stage.anna.options("/v1/conversations", headers={**good, **ask})
        assert allowed.headers["access-control-allow-origin"] == "https://app.example"
        assert "access-control-allow-credentials" not in allowed.headers
        openai = {"Access-Control-Request-Headers": "authorization, x-stainless-retry-count"}
        asked = await stage.anna.options("/openai/v1/responses", headers={**good, **ask, **openai})
        assert asked.status_code == 200, asked.text
        answered = await stage.anna.get("/v1/me", headers=good)
        assert answered.headers["access-control-allow-origin"] == "https://app.example"
        evil = await stage.anna.get("/v1/me", headers={"Origin": "https://evil.example"})
        assert "access-control-allow-origin" not in evil.headers
    async with open_gateway(world) as stage:
        closed = await stage.anna.options("/v1/conversations", headers={**good, **ask})
        assert "access-control-allow-origin" not in closed.headers


async def test_a_token_is_used_once_also_at_two_gateways_at_once() -> None:
    store = MemoryStore()
    text = await create_token(store, "ticket", "anna", ["read"], timedelta(seconds=30))
    assert await use_token(store, "login", text) is None
    used = [await use_token(store, "ticket", text) for _ in range(3)]
    assert [token is not None for token in used] == [True, False, False]
    [mark] = [key for key in store.objects if key.endswith(".used")]
    assert text.partition(".")[2] not in mark


async def test_what_is_left_of_expired_tokens_is_deleted() -> None:
    store = MemoryStore()
    for minutes in (1, 60, 600):
        await create_token(store, "session", "anna", ["read"], timedelta(minutes=minutes))
    text = await create_token(store, "ticket", "anna", ["read"], timedelta(minutes=1))
    await use_token(store, "ticket", text)
    assert await delete_expired_tokens(store, datetime.now(UTC)) == 0
    later = datetime.now(UTC) + timedelta(hours=3)
    assert await delete_expired_tokens(store, later) == 3
    assert len(store.objects) == 1


async def test_what_a_token_of_an_issuer_begins_ends_with_the_token() -> None:
    sessions = Sessions(MemoryStore())
    soon = datetime.now(UTC) + timedelta(minutes=5)
    person = Principal("anna", frozenset({"read"}), "token", expires=soon)
    session = await sessions.authenticate(await sessions.begin(person))
    assert session is not None
    assert session.expires is not None
    assert session.expires <= soon
    ticket = await sessions.use_ticket(await sessions.make_ticket(person))
    assert ticket is not None
    assert ticket.expires == soon
    late = await sessions.make_ticket(session)
    in_session = await sessions.use_ticket(late)
    assert in_session is not None
    assert in_session.expires == session.expires


async def test_a_session_of_a_key_lasts_as_long_as_a_session() -> None:
    sessions = Sessions(MemoryStore())
    person = Principal("anna", frozenset({"read"}), "key", key_id="0" * 16)
    session = await sessions.authenticate(await sessions.begin(person))
    assert session is not None
    assert session.expires is not None
    assert session.expires > datetime.now(UTC) + timedelta(days=13)
