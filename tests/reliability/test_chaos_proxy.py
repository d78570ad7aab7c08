"""The proxy injects the faults that it announces, and counts them."""

import asyncio
import http.client
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from reliability.chaos import proxy
from reliability.chaos.http import read_request
from reliability.chaos.proxy import Fault, FaultyProxy

BODY = b"x" * 1000


class Target:
    """A server that records its requests."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, bytes]] = []
        self.heard = asyncio.Event()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (request := await read_request(reader, writer)) is not None:
            self.requests.append((request.method, request.path, request.body))
            self.heard.set()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + BODY)
            await writer.drain()
        writer.close()


@asynccontextmanager
async def network(
    fault: Fault | None, writes: list[proxy.StoredWrite] | None = None
) -> AsyncIterator[tuple[Target, FaultyProxy]]:
    """A target behind a network in which every request meets the fault."""
    target = Target()
    server = await asyncio.start_server(target.accept, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    weights = {fault: 1.0} if fault else {}
    hear = writes.append if writes is not None else lambda _: None
    async with FaultyProxy(address, 0, 1.0, weights, hear).listening() as faulty:
        yield target, faulty
    server.close()


async def send_request(faulty: FaultyProxy, method: str = "GET") -> tuple[int, bytes]:
    """Raises what a client sees where the connection ends too soon."""

    def ask() -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(faulty.endpoint.removeprefix("http://"))
        try:
            connection.request(method, "/a", b"one" if method == "PUT" else None)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    return await asyncio.to_thread(ask)


@pytest.mark.parametrize("fault", [None, Fault.DELAYED, Fault.SLOW])
async def test_a_slow_answer_arrives(fault: Fault | None) -> None:
    async with network(fault) as (target, faulty):
        assert await send_request(faulty) == (200, BODY)
        assert target.requests == [("GET", "/a", b"")]
        assert dict(faulty.hits) == ({("GET", fault): 1} if fault else {})


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        (Fault.THROTTLED, 503),
        (Fault.TOO_MANY, 429),
        (Fault.CONFLICT, 409),
        (Fault.BROKEN, 500),
    ],
)
async def test_a_refused_request_does_not_arrive(fault: Fault, status: int) -> None:
    writes: list[proxy.StoredWrite] = []
    async with network(fault, writes) as (target, faulty):
        assert (await send_request(faulty, "PUT"))[0] == status
        assert target.requests == []
        assert dict(faulty.hits) == {("PUT", fault): 1}
    assert writes == []


async def test_a_lost_request_does_not_arrive() -> None:
    async with network(Fault.LOST) as (target, faulty):
        with pytest.raises(ConnectionError):
            await send_request(faulty, "PUT")
        assert target.requests == []


async def test_an_unanswered_write_is_done() -> None:
    writes: list[proxy.StoredWrite] = []
    async with network(Fault.UNANSWERED, writes) as (target, faulty):
        with pytest.raises(ConnectionError):
            await send_request(faulty, "PUT")
        assert target.requests == [("PUT", "/a", b"one")]
    assert [item.path for item in writes] == ["/a"]


async def test_a_late_write_is_done_after_its_time_out() -> None:
    async with network(Fault.LATE) as (target, faulty):
        assert (await send_request(faulty, "PUT"))[0] == 504
        assert target.requests == []
        await target.heard.wait()
        assert target.requests == [("PUT", "/a", b"one")]
    assert faulty.late_writes == 1


async def test_a_torn_answer_ends_too_soon() -> None:
    async with network(Fault.TORN) as (target, faulty):
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            await send_request(faulty)
        assert len(target.requests) == 1
