"""The limits of a gateway, and what is written of those who pass them."""

import asyncio
import contextlib
import json
import logging
from collections import OrderedDict
from contextlib import AsyncExitStack, ExitStack
from typing import Any, ClassVar

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route
from websockets.asyncio.client import ClientConnection

from perdure.api.conversations import Conversation
from perdure.api.frames import AckFrame, ErrorFrame
from perdure.gateway.callers import unauthorized
from perdure.gateway.edge.guard import Guard
from perdure.gateway.edge.http_protocol import LimitedProtocol
from perdure.gateway.edge.transfers import TransferLimits
from perdure.gateway.errors import Refused
from perdure.gateway.identity.sites import Site
from perdure.gateway.limits.connections import Connections
from perdure.gateway.limits.held_bytes import HeldBytes
from perdure.gateway.limits.rates import Rates
from perdure.gateway.limits.token_bucket import TokenBucket
from perdure.testing.server import serve_app
from reliability.following.http_clients import open_socket, receive_frames
from tests.gateway.stage import GatewayStage, open_gateway
from tests.harness import ConversationHarness, text_answer

CANARY = "canary-7f3a-secret"


@given(st.lists(st.floats(0, 100), min_size=1, max_size=200), st.floats(0.1, 50), st.floats(1, 20))
def test_a_bucket_lets_through_its_burst_and_its_rate_and_no_more(
    pauses: list[float], rate: float, burst: float
) -> None:
    now, taken = 0.0, 0
    bucket = TokenBucket.filled(rate, burst, now)
    for pause in pauses:
        now += pause / 10
        wait = bucket.take(now)
        taken += wait == 0
        assert wait == 0 or TokenBucket(**vars(bucket)).take(now + wait * 1.001 + 1e-6) == 0
    assert taken <= burst + rate * now + 1e-6


def test_rates_are_of_each_user_and_each_class() -> None:
    clock = [0.0]
    rates = Rates({"write": 60}, lambda: clock[0])
    for _ in range(10):
        rates.take("write", "anna")
    with pytest.raises(Refused) as refused:
        rates.take("write", "anna")
    assert (refused.value.status, refused.value.headers) == (429, {"Retry-After": "1"})
    rates.take("write", "ben")
    rates.take("read", "anna")
    clock[0] = 1.0
    rates.take("write", "anna")


def test_a_user_has_so_many_connections_at_once() -> None:
    connections = Connections(2)
    with ExitStack() as stack:
        for user in ("anna", "anna", "ben"):
            stack.enter_context(connections.hold(user))
        with pytest.raises(Refused, match="2 connections"):
            stack.enter_context(connections.hold("anna"))
    with connections.hold("anna"):
        assert True


@pytest.mark.long
async def test_too_many_requests_are_refused_with_the_time_to_wait(
    world: ConversationHarness,
) -> None:
    async with open_gateway(world, gateway_rates={"read": 60, "costly": 6}) as stage:
        statuses = [(await stage.anna.get("/v1/me")).status_code for _ in range(12)]
        assert statuses[:10] == [200] * 10
        refused = await stage.anna.get("/v1/me")
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) >= 1
        assert refused.json()["code"] == "too_many_requests"
        assert (await stage.ben.get("/v1/me")).status_code == 200


@pytest.mark.long
async def test_requests_on_a_socket_count_as_others_do(world: ConversationHarness) -> None:
    async with world.worker(), open_gateway(world, gateway_rates={"write": 6}) as stage:
        conversation_id = await stage.start(text_answer("Hello."))
        await stage.wait_until(conversation_id, "finished")
        async with open_socket(stage.anna, conversation_id) as socket:
            for number in range(8):
                await socket.send(json.dumps({"kind": "pause", "id": str(number)}))
            answers = await receive_answers(socket, 8)
        refused = [answer for answer in answers if isinstance(answer, ErrorFrame)]
        assert {answer.code for answer in refused} == {"too_many_requests"}
        assert len(refused) >= 3, "starting the conversation was one of the five"


@pytest.mark.long
async def test_who_guesses_is_slowed_and_who_is_known_is_not(world: ConversationHarness) -> None:
    async with open_gateway(world, gateway_rates={"failure": 6}) as stage:
        assert (await stage.anna.get("/v1/me")).status_code == 200
        nobody = stage.client_with("pk_0123456789abcdef_" + "a" * 43)
        statuses = [(await nobody.get("/v1/me")).status_code for _ in range(8)]
        assert statuses == [401] * 5 + [429] * 3
        assert (await stage.anna.get("/v1/me")).status_code == 200


@pytest.mark.long
async def test_a_user_has_a_number_of_streams(world: ConversationHarness) -> None:
    async with open_gateway(world, gateway_connections=1) as stage, AsyncExitStack() as streams:
        for client in (stage.anna, stage.ben):
            feed = await streams.enter_async_context(client.stream("GET", "/v1/feed"))
            assert feed.status_code == 200
        second = await stage.anna.get("/v1/feed")
        assert (second.status_code, second.json()["code"]) == (429, "too_many_connections")


async def receive_answers(socket: ClientConnection, count: int) -> list[AckFrame | ErrorFrame]:
    """Receive the answers to so many requests."""
    answers: list[AckFrame | ErrorFrame] = []
    async for frame in receive_frames(socket):
        if isinstance(frame, AckFrame | ErrorFrame):
            answers.append(frame)
        if len(answers) == count:
            break
    return answers


async def send_raw(url: str, *parts: bytes) -> bytes:
    """Send bytes on a connection of its own, and return all that comes back until it ends."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    answer = bytearray()
    with contextlib.suppress(ConnectionError):
        for part in parts:
            writer.write(part)
            await writer.drain()
    with contextlib.suppress(ConnectionError):
        while chunk := await reader.read(65536):
            answer += chunk
    writer.close()
    return bytes(answer)


def head(stage: GatewayStage, *lines: str) -> bytes:
    key = stage.anna.headers["authorization"]
    start = ("POST /v1/conversations HTTP/1.1", "Host: 127.0.0.1", f"Authorization: {key}")
    return "\r\n".join([*start, *lines, "", ""]).encode()


@pytest.mark.long
async def test_a_body_of_10_mb_is_refused_however_it_comes(stage: GatewayStage) -> None:
    stated = await send_raw(
        stage.url, head(stage, "Content-Type: application/json", "Content-Length: 10000000")
    )
    assert stated.startswith(b"HTTP/1.1 413")
    assert b'"too_large"' in stated
    chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
    chunked = await send_raw(
        stage.url,
        head(stage, "Content-Type: application/json", "Transfer-Encoding: chunked"),
        *[chunk] * 10,
    )
    assert chunked.startswith(b"HTTP/1.1 413")


@pytest.mark.long
async def test_a_head_of_10_mb_is_refused(stage: GatewayStage) -> None:
    start = b"GET /v1/me HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: "
    answer = await send_raw(stage.url, start, *[b"a" * 100_000] * 100)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 400")
    short = await send_raw(stage.url, b"nonsense\r\n\r\n")
    assert short.startswith(b"HTTP/1.1 400")
    assert b"application/problem+json" in short


async def know_nobody(_: HTTPConnection) -> None:
    raise unauthorized()


async def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    async def echo(request: Request) -> PlainTextResponse:
        return PlainTextResponse(await request.body())

    app = Starlette(routes=[Route("/", echo, methods=["POST"])])
    async with serve_app(
        TransferLimits(app, 1000, know_nobody, HeldBytes(), body_timeout=0.2)
    ) as url:
        start = b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 3\r\n\r\n"
        assert (await send_raw(url, start, b"abc")).endswith(b"abc")
        assert (await send_raw(url, start, b"ab")).startswith(b"HTTP/1.1 408")


async def test_who_does_not_read_an_answer_is_cut_off(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "perdure.gateway")

    async def send_much(_: Request) -> StreamingResponse:
        return StreamingResponse(b"x" * 100_000 for _ in range(1000))

    limits = Middleware(
        TransferLimits, most=1000, identify=know_nobody, held=HeldBytes(), send_timeout=0.3
    )
    guard = Middleware(Guard, site=Site(is_local=True))
    app = Starlette(routes=[Route("/", send_much)], middleware=[guard, limits])
    async with serve_app(app) as url:
        host, port = url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port), limit=1000)
        writer.write(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        while "slow_reader" not in caplog.text:
            await asyncio.sleep(0.05)
        received = 0
        with contextlib.suppress(ConnectionError):
            while chunk := await reader.read(1_000_000):
                received += len(chunk)
        writer.close()
    assert received < 100_000_000


class Impatient(LimitedProtocol):
    """A protocol with small limits."""

    head_timeout = 0.5
    max_half_open = 20
    half_open: ClassVar[OrderedDict[LimitedProtocol, None]] = OrderedDict()


@pytest.mark.long
async def test_connections_that_ask_nothing_take_no_place_from_others(
    world: ConversationHarness,
) -> None:
    async with open_gateway(world, protocol=Impatient) as stage:
        host, port = stage.url.removeprefix("http://").split(":")
        idle = [await asyncio.open_connection(host, int(port)) for _ in range(100)]
        for _, writer in idle[::2]:
            writer.write(b"GET /v1/me HTTP/1.1\r\nHost: 127")
        assert (await stage.anna.get("/v1/me")).status_code == 200
        assert len(Impatient.half_open) <= 20
        for reader, writer in idle:
            with contextlib.suppress(ConnectionError):
                assert await reader.read(100) == b""
            writer.close()
        assert len(Impatient.half_open) == 0
        assert (await stage.anna.get("/v1/me")).status_code == 200


@pytest.mark.long
async def test_the_audit_names_who_was_refused_and_who_did_what_and_no_secret(
    stage: GatewayStage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "perdure.gateway")
    name = await stage.start(text_answer("It is 5."))
    made = (await stage.anna.post("/v1/keys", json={"name": CANARY})).json()
    await stage.anna.delete(f"/v1/keys/{made['key']['id']}")
    await stage.anna.put(f"/v1/conversations/{name}/grants/ben", json={"access": "read"})
    await stage.client_with(f"pk_{CANARY}").get("/v1/me", params={"ticket": CANARY})
    await stage.client_with(None).post("/v1/login", json={"code": CANARY})
    await stage.ben.post(
        f"/v1/conversations/{name}/messages?owner=anna&x={CANARY}", json={"text": CANARY}
    )
    await stage.anna.post("/v1/conversations", json={"text": "?", CANARY: CANARY})
    lines = [json.loads(record.message) for record in audit_records(caplog)]
    acts = [(line["act"], line.get("user"), line.get("status")) for line in lines]
    assert ("key.create", "anna", None) in acts
    assert ("key.revoke", "anna", None) in acts
    assert ("grant", "anna", None) in acts
    assert ("refused", None, 401) in acts
    assert ("refused", "ben", 403) in acts
    grant = next(line for line in lines if line["act"] == "grant")
    assert (grant["to"], grant["access"], grant["address"]) == ("ben", "read", "127.0.0.1")
    text = "\n".join(record.getMessage() for record in caplog.records)
    for secret in (CANARY, made["secret"], stage.anna.headers["authorization"][7:]):
        assert secret not in text


def audit_records(caplog: pytest.LogCaptureFixture) -> list[Any]:
    return [record for record in caplog.records if record.name == "perdure.gateway.audit"]


async def test_a_bug_is_answered_by_a_problem_and_logged_without_the_request(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fail(request: Request) -> PlainTextResponse:
        Conversation.model_validate(await request.json())
        return PlainTextResponse("")

    guard = Middleware(Guard, site=Site(is_local=True))
    app = Starlette(routes=[Route("/", fail, methods=["POST"])], middleware=[guard])
    async with serve_app(app) as url, httpx.AsyncClient() as client:
        failed = await client.post(url, json={"id": [CANARY], CANARY: CANARY})
    assert (failed.status_code, failed.json()["code"]) == (500, "internal")
    assert failed.headers["content-type"] == "application/problem+json"
    assert "ValidationError" in caplog.text
    assert CANARY not in caplog.text
