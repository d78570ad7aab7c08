"""Secrets of all kinds, driven through success, refusal and outage: none is logged or answered."""

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from perdure.api.keys import Scope
from perdure.embedded.ports import choose_ports
from perdure.secrets.registry import Secrets
from perdure.storage.credentials.api_keys import create_api_key
from perdure.storage.credentials.tokens import create_token
from perdure.storage.store import S3Access
from perdure.testing.server import serve_app
from reliability.chaos.environment import worker_environment
from reliability.following.gateways import GatewayProcess
from tests.gateway.issuer import AUDIENCE, TestIssuer, serve_issuer
from tests.gateway.security.canaries import Asking, Witness, find_canaries, serve_talkative_gateway
from tests.gateway.security.foreign_canaries import drive_foreign
from tests.gateway.security.scene import RATES
from tests.gateway.stage import as_json
from tests.harness import ConversationHarness, text_answer, tool_call_answer

pytestmark = pytest.mark.long

LIFETIME = timedelta(minutes=5)

NOWHERE = "http://127.0.0.1:9"

READ_ROUTES = ("", "/events", "/state", "/trouble", "/turn?wait=0", "/values", "/export", "/files")


def canary(name: str) -> str:
    return f"canary-{name}-{base64.b32encode(name.encode()).decode().strip('=').lower()}-4711"


@asynccontextmanager
async def gateway_process(folder: Path, env: dict[str, str]) -> AsyncIterator[GatewayProcess]:
    folder.mkdir()
    [port] = choose_ports(folder / "ports.json", ("gateway",)).values()
    process = GatewayProcess(port, env, folder / "gateway.log", serve_talkative_gateway)
    await process.start()
    try:
        yield process
    finally:
        await process.stop()


def environment(world: ConversationHarness, **settings: str) -> dict[str, str]:
    address = world.client.temporal.service_client.config.target_host
    return {
        **worker_environment(address, "", S3Access()),
        "PERDURE_STORE": (world.folder / "store").as_uri(),
        "PERDURE_TASK_QUEUE": world.client.task_queue,
        "PERDURE_USER": "local",
        "PERDURE_GATEWAY_TRUSTED": "true",
        "PERDURE_GATEWAY_RATES": json.dumps(RATES),
        **settings,
    }


@asynccontextmanager
async def leaking_provider(secret: str) -> AsyncIterator[str]:
    """Serve a provider of models that repeats the key in its error."""

    async def refuse(_: Request) -> JSONResponse:
        error = {"message": f"Incorrect API key provided: {secret}.", "code": "invalid_api_key"}
        return JSONResponse({"error": error}, 401)

    routes = [Route("/v1/chat/completions", refuse, methods=["POST"])]
    async with serve_app(Starlette(routes=routes)) as url:
        yield f"{url}/v1"


async def drive_credentials(asking: Asking, witness: Witness, conversation_id: str) -> None:
    """Use keys, sessions, tickets and codes where they belong, where they do not, and twice."""
    key, path = witness.secrets["API key"], f"/v1/conversations/{conversation_id}"
    wrong = "00000000-0000-7000-8000-000000000000"
    for asked in ("/v1/me", path, f"/v1/conversations/{wrong}", f"{path}/events?limit=x", "/no"):
        await asking.ask("GET", asked, key)
        for name in ("unknown key", "forged token", "token"):
            await asking.ask("GET", asked, witness.secrets[name])
        await asking.ask("GET", f"{asked}{'&' if '?' in asked else '?'}key={key}&api_key={key}")
        basic = base64.b64encode(f"anna:{witness.secrets['password']}".encode()).decode()
        for scheme in (f"Basic {basic}", f"Digest {key}", key, f"Token {key}"):
            await asking.ask("GET", asked, headers={"Authorization": scheme})
        for header in ("X-Api-Key", "Proxy-Authorization", "X-Auth-Token"):
            await asking.ask("GET", asked, headers={header: witness.secrets["header"]})
        cookies = {"Cookie": f"perdure-session={witness.secrets['cookie']}"}
        await asking.ask("GET", asked, headers=cookies)
    made = await asking.ask("POST", "/v1/keys", key, json={"name": "ci"})
    new_key = witness.know("new key", made.json()["secret"])
    await asking.ask("GET", "/v1/me", new_key)
    await asking.ask("GET", "/v1/keys", key)
    await asking.ask("POST", "/v1/keys", key, json={"name": "ci", "secret": new_key})
    await asking.ask("DELETE", f"/v1/keys/{made.json()['key']['id']}", key)
    await asking.ask("GET", "/v1/me", new_key)
    for body in (
        {"code": witness.secrets["wrong code"]},
        {"key": witness.secrets["unknown key"]},
        {"code": witness.secrets["wrong code"], "key": key},
        {"password": witness.secrets["password"]},
    ):
        await asking.ask("POST", "/v1/login", json=body)
    code = witness.secrets["login code"]
    begun = await asking.ask("POST", "/v1/login", json={"code": code})
    assert begun.status_code == 200
    name, _, rest = begun.headers["set-cookie"].partition("=")
    session = witness.know("session", rest.partition(";")[0])
    await asking.ask("POST", "/v1/login", json={"code": code})
    cookies = {"Cookie": f"{name}={session}"}
    for method, asked in (("GET", "/v1/me"), ("POST", "/v1/tickets"), ("POST", "/v1/logout")):
        await asking.ask(method, asked, headers=cookies)
        own = {**cookies, "Sec-Fetch-Site": "same-origin"}
        await asking.ask(method, asked, headers=own)
    made = await asking.ask("POST", "/v1/tickets", key)
    ticket = witness.know("ticket", made.json()["ticket"])
    for secret in (ticket, ticket, witness.secrets["forged ticket"]):
        await asking.open_socket(f"{path}/socket?ticket={secret}", {})
        await asking.ask("GET", f"/v1/me?ticket={secret}")
    await asking.open_socket(f"{path}/socket", {"Authorization": f"Bearer {key}"})


async def drive_bodies(asking: Asking, witness: Witness, conversation_id: str) -> None:
    """Send secrets in fields of bodies and headers where they do not belong, or belong unshown."""
    key, path = witness.secrets["API key"], f"/v1/conversations/{conversation_id}"
    model = witness.secrets["model key"]
    for agent in (
        {"model": {"name": "scripted:none.json", "api_key": model}},
        {"model": {"name": "scripted:none.json"}, "api_key": model},
        {"model": model * 20},
        {"model": {"name": "scripted:none.json", "timeout": model}},
        {"model": {"name": "scripted:none.json"}, "secrets": [{"TOKEN": model}]},
        {"model": {"name": "scripted:none.json"}, "mcp": [{"name": "x", "headers": model}]},
    ):
        refused = await asking.ask("POST", "/v1/conversations", key, json={"agent": agent})
        assert refused.status_code == 422
    await asking.ask(
        "POST", f"{path}/configure", key, json={"changes": {"model": {"api_key": model}}}
    )
    malformed = f'{{"text": "x", "api_key": "{model}'.encode()
    headers = {"Content-Type": "application/json"}
    await asking.ask("POST", "/v1/conversations", key, content=malformed, headers=headers)
    once = {"Idempotency-Key": witness.secrets["idempotency key"]}
    for body in ({"text": "And?"}, {"text": "And?"}, {"text": "Other?"}, {"nothing": 1}):
        await asking.ask("POST", f"{path}/messages", key, json=body, headers=once)
    await asking.ask(
        "POST",
        f"{path}/messages",
        key,
        json={"text": "x"},
        headers={"Idempotency-Key": witness.secrets["idempotency key"] * 20},
    )


async def drive_conversation(
    asking: Asking, world: ConversationHarness, witness: Witness, provider: str
) -> str:
    """Run a turn whose tool prints a secret of the worker, and one whose provider refuses."""
    key = witness.secrets["API key"]
    command = {"command": "echo here it is: $TOKEN; env"}
    answers = [tool_call_answer(("terminal", command)), *[text_answer("Done.")] * 5]
    agent = as_json(world.spec(*answers, tools=("terminal",), secrets=("TOKEN",)))
    refusing = {"model": {"name": "openai/none", "api_base": provider}, "tools": ["think"]}
    ids = []
    for it in (agent, refusing):
        body = {"text": "Print it.", "agent": it}
        started = await asking.ask("POST", "/v1/conversations", key, json=body)
        path = f"/v1/conversations/{started.json()['id']}"
        async with asyncio.timeout(60):
            while (await asking.ask("GET", path, key)).json()["status"]["status"] not in (
                "finished",
                "error",
            ):
                await asyncio.sleep(0.3)
        for more in (*READ_ROUTES, "/stream?follow=false"):
            answer = await asking.ask("GET", f"{path}{more}", key)
            assert answer.status_code == 200, more
        ids.append(started.json()["id"])
    return str(ids[0])


async def drive_outage(asking: Asking, witness: Witness) -> None:
    """Ask where the store, Temporal and the issuer do not answer."""
    path = "/v1/conversations/00000000-0000-7000-8000-000000000000"
    secrets = witness.secrets
    cookies = {"Cookie": f"perdure-session={secrets['cookie']}"}
    await asyncio.gather(
        *[
            asking.ask("GET", asked, secrets[name])
            for name in ("API key", "unknown key", "forged token", "token")
            for asked in ("/v1/me", path, "/ready")
        ],
        asking.ask("GET", "/v1/me", headers=cookies),
        asking.ask("POST", "/v1/login", json={"code": secrets["login code"]}),
        asking.ask("POST", "/v1/login", json={"code": secrets["wrong code"]}),
        asking.open_socket(f"{path}/socket?ticket={secrets['forged ticket']}", {}),
    )


def forge(token: str) -> str:
    """Return a token with the claims of another and a signature of ours."""
    signature = base64.urlsafe_b64encode(canary("signature").encode()).decode().rstrip("=")
    return f"{token.rpartition('.')[0]}.{signature}"


async def test_no_secret_is_logged_or_answered(
    world: ConversationHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    witness = Witness()
    provider_key = witness.know("provider key", canary("provider"))
    monkeypatch.setenv("OPENAI_API_KEY", provider_key)
    folder = tmp_path / "secrets"
    folder.mkdir()
    (folder / "TOKEN").write_text(witness.know("tool secret", canary("tool")))
    world = replace(world, resources=replace(world.resources, secrets=Secrets(folder)))
    async with serve_issuer() as issuer, leaking_provider(provider_key) as provider:
        await know_credentials(witness, world, issuer)
        healthy = environment(
            world, PERDURE_GATEWAY_ISSUER=issuer.url, PERDURE_GATEWAY_AUDIENCE=AUDIENCE
        )
        async with world.worker(), gateway_process(tmp_path / "healthy", healthy) as process:
            asking = Asking(process.url, witness)
            marker = canary("marker")
            await asking.ask("GET", f"/v1/{marker}", witness.secrets["API key"])
            conversation_id = await drive_conversation(asking, world, witness, provider)
            await drive_credentials(asking, witness, conversation_id)
            await drive_bodies(asking, witness, conversation_id)
            await drive_foreign(asking, witness, conversation_id)
            await asking.close()
            log = process.log
        failing = failing_environment(world, witness)
        async with gateway_process(tmp_path / "failing", failing) as process:
            asking = Asking(process.url, witness)
            await drive_outage(asking, witness)
            await asking.close()
            failing_log = process.log
    assert len(witness.secrets) >= 20
    assert {200, 201, 204, 401, 403, 404, 422, 503} <= set(witness.statuses)
    printed = log.read_text() + failing_log.read_text()
    assert marker in printed, "the search sees what is logged"
    assert '"act": "key.create"' in printed
    assert "DEBUG" in printed
    assert not witness.leaks
    lines = [line[:400] for line in printed.splitlines() if find_canaries(witness.secrets, line)]
    assert not lines, f"{find_canaries(witness.secrets, printed)}\n" + "\n".join(lines[:20])


async def know_credentials(
    witness: Witness, world: ConversationHarness, issuer: TestIssuer
) -> None:
    """Make the credentials that are driven through the gateways."""
    issuer.add_rsa_key("first")
    store = world.client.store
    scopes: tuple[Scope, ...] = ("read", "write", "admin")
    witness.know("API key", (await create_api_key(store, "anna", "test", scopes)).secret)
    witness.know("unknown key", f"pk_0123456789abcdef_{canary('unknown')}".ljust(63, "x"))
    witness.know("token", issuer.token())
    witness.know("forged token", forge(issuer.token()))
    witness.know("login code", await create_token(store, "login", "anna", scopes, LIFETIME))
    for name in ("password", "header", "cookie", "wrong code", "model key", "idempotency key"):
        witness.know(name, canary(name.replace(" ", "")))
    witness.know("forged ticket", f"{int(time.time()) + 30:010d}.{canary('ticket')}")


def failing_environment(world: ConversationHarness, witness: Witness) -> dict[str, str]:
    """Return the environment of a gateway whose servers do not answer, with keys for all."""
    payload_key = base64.b64encode(b"payload-canary-of-32-bytes-4711!").decode()
    issuer_secret = witness.know("issuer secret", canary("issuer"))
    return environment(
        world,
        PERDURE_STORE="s3://bucket",
        AWS_ENDPOINT_URL_S3=NOWHERE,
        AWS_ACCESS_KEY_ID="AKIACANARY",
        AWS_SECRET_ACCESS_KEY=witness.know("S3 key", canary("s3")),
        AWS_SESSION_TOKEN=witness.know("S3 token", canary("s3token")),
        TEMPORAL_ADDRESS="127.0.0.1:9",
        TEMPORAL_API_KEY=witness.know("Temporal key", canary("temporal")),
        PERDURE_PAYLOAD_KEYS=f"k1:{witness.know('payload key', payload_key)}",
        PERDURE_GATEWAY_KEY=witness.know("gateway key", canary("gateway")),
        PERDURE_GATEWAY_ISSUER=NOWHERE,
        PERDURE_GATEWAY_AUDIENCE=AUDIENCE,
        PERDURE_GATEWAY_JWKS=f"{NOWHERE}/keys?client_secret={issuer_secret}",
    )


@pytest.mark.parametrize(
    "disguise", [str, json.dumps, lambda text: base64.b64encode(text.encode()).decode()]
)
def test_the_search_finds_what_is_planted(disguise: Callable[[str], str]) -> None:
    witness = Witness()
    for name in ("one", "two"):
        witness.know(name, canary(name))
    witness.note("an answer", f'{{"detail": "{disguise(canary("two"))}"}}')
    assert witness.leaks == ["an answer shows two"]
    witness.note("another", disguise(canary("two")), shows=("two",))
    assert len(witness.leaks) == 1
    assert find_canaries(witness.secrets, "nothing of it") == set()
