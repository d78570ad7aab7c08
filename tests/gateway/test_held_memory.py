"""What a gateway keeps for its clients: bodies of strangers, answers that nobody takes."""

import asyncio
import contextlib
import socket

import pytest

from perdure.gateway.edge.transfers import SMALL_BODY
from perdure.gateway.edge.unread import CLOSE_TIMEOUT, MIN_RATE, STALL_TIMEOUT, UnreadConnections
from perdure.gateway.errors import Refused
from perdure.gateway.limits.held_bytes import HeldBytes
from tests.gateway.security.crowd import Crowd, send_all
from tests.gateway.security.raw import build_request, send_raw
from tests.gateway.stage import GatewayStage

MB = 1024 * 1024
JSON = {"Host": "127.0.0.1", "Content-Type": "application/json"}


class Connection:
    """A transport with so many bytes to send."""

    def __init__(self, size: int, *, is_closed: bool = False) -> None:
        self.size = size
        self.is_closed = is_closed
        self.is_aborted = False

    def is_closing(self) -> bool:
        return self.is_closed

    def get_write_buffer_size(self) -> int:
        return self.size

    def abort(self) -> None:
        self.is_aborted = True


def test_a_closed_connection_has_time_for_what_is_left() -> None:
    unread = UnreadConnections()
    small, large = Connection(0, is_closed=True), Connection(MB, is_closed=True)
    for now in (0.0, CLOSE_TIMEOUT - 1):
        unread.abort_late([small, large], now)
        assert not small.is_aborted
    large.size //= 2  # what it takes meanwhile wins no time
    unread.abort_late([small, large], CLOSE_TIMEOUT)
    assert (small.is_aborted, large.is_aborted) == (True, False)
    unread.abort_late([large], CLOSE_TIMEOUT + MB / MIN_RATE)
    assert large.is_aborted


def test_an_open_connection_of_which_nothing_is_taken_is_cut_off() -> None:
    unread = UnreadConnections()
    stalled, slow, quiet = Connection(10), Connection(10), Connection(0)
    for tenth in range(11):
        slow.size += 1
        unread.abort_late([stalled, slow, quiet], tenth * STALL_TIMEOUT / 10)
    assert (stalled.is_aborted, slow.is_aborted, quiet.is_aborted) == (True, False, False)


def test_a_user_holds_so_much_and_one_thing_of_any_size() -> None:
    held = HeldBytes(100)
    held.hold("anna", 1000)
    held.hold("ben", 60)
    for who in ("anna", "ben"):
        with pytest.raises(Refused, match="under way") as refused:
            held.hold(who, 60)
        assert (refused.value.status, refused.value.headers) == (429, {"Retry-After": "10"})
    held.release("ben", 60)
    held.hold("ben", 60)


def start_of_a_body(size: int, **headers: str) -> bytes:
    return build_request(
        "/v1/conversations", "POST", {**JSON, **headers, "Content-Length": str(size)}
    )


async def test_the_body_of_a_stranger_is_not_read(idle_stage: GatewayStage) -> None:
    """The answer comes before the body has come."""
    part = b" " * (SMALL_BODY + 1)
    refused = await send_raw(idle_stage.url, start_of_a_body(MB), part)
    assert refused.statuses == (401,)
    assert "WWW-Authenticate: Bearer".lower() in refused.text.lower()
    assert '"code":"unauthorized"' in refused.text
    key = idle_stage.anna.headers["authorization"]
    known = await send_raw(idle_stage.url, start_of_a_body(len(part), Authorization=key), part)
    assert known.statuses == (422,)


@pytest.mark.long
async def test_a_user_sends_so_many_large_bodies_at_once(idle_stage: GatewayStage) -> None:
    key = idle_stage.anna.headers["authorization"]
    host, port = idle_stage.url.removeprefix("http://").split(":")
    head = start_of_a_body(7 * MB, Authorization=key, Connection="keep-alive")
    opened = []
    try:
        for _ in range(12):
            reader, writer = await asyncio.open_connection(host, int(port))
            opened.append((reader, writer))
            writer.write(head + b" " * (6 * MB))
        answers = [asyncio.ensure_future(reader.read(100)) for reader, _ in opened]
        done, waiting = await asyncio.wait(answers, timeout=3)
        assert done
        assert all(it.result().startswith(b"HTTP/1.1 429") for it in done)
        assert len(waiting) >= 64 // 6 - 1
        assert (await idle_stage.ben.get("/v1/me")).status_code == 200
    finally:
        for task in answers:
            task.cancel()
        for _, writer in opened:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
    async with asyncio.timeout(30):
        while idle_stage.gateway.held_bytes._sizes:
            await asyncio.sleep(0.05)


async def test_answers_that_nobody_takes_are_few(
    idle_stage: GatewayStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reads after all gets the whole of what was begun."""
    monkeypatch.setattr(idle_stage.gateway.held_bytes, "_most", 1)
    request = build_request("/openapi.json", headers={"Host": "127.0.0.1"})
    crowd = Crowd(int(idle_stage.url.rpartition(":")[2]), receive_bytes=4096)
    try:
        slow = await crowd.open()
        alive = {"Host": "127.0.0.1", "Connection": "keep-alive"}
        await send_all(slow, [build_request("/openapi.json", headers=alive)] * 5 + [request])
        async with asyncio.timeout(30):
            while not idle_stage.gateway.held_bytes._sizes:
                await asyncio.sleep(0.05)
        refused = await send_raw(idle_stage.url, request)
        assert refused.statuses == (429,)
        assert '"code":"too_much_under_way"' in refused.text
        assert (await idle_stage.anna.get("/v1/keys")).status_code == 200
        begun = await read_all(slow)
    finally:
        crowd.close()
    assert begun.count(b"HTTP/1.1 200") == 6
    assert begun.endswith(b"}")
    assert (await send_raw(idle_stage.url, request)).statuses == (200,)


async def read_all(connection: socket.socket) -> bytes:
    """Read until the other side ends."""
    found = bytearray()
    while part := await asyncio.get_running_loop().sock_recv(connection, 65536):
        found += part
    return bytes(found)
