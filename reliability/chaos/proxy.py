"""An HTTP/1.1 proxy before an S3 server that injects network faults, at random or as listed.

It forwards bytes unchanged, the `Host` header too, so that signatures stay valid. It draws faults
from a seed, and counts the injected ones.
"""

import asyncio
import contextlib
import random
import socket
import struct
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from time import monotonic
from typing import Self
from urllib.parse import urlsplit

from reliability.chaos.http import Answer, Request, read_answer, read_request

REQUEST_DELAY = (0.1, 1.0)
"""The least and the most seconds by which a delayed request is forwarded late."""

LATE_AFTER = 1.0
"""Seconds between a 504 and the forwarding of its request."""

PIECES = 5
PIECE_DELAY = 0.15
"""Seconds between two pieces of a slow body."""


class Fault(Enum):
    THROTTLED = "503 and not passed on"
    TOO_MANY = "429 and not passed on"
    CONFLICT = "409 and not passed on"
    BROKEN = "500 and not passed on"
    LOST = "reset before it is passed on"
    UNANSWERED = "done, and reset before the answer"
    DELAYED = "passed on late"
    LATE = "504, and done a second later"
    TORN = "reset in the middle of the answer"
    SLOW = "the answer comes in pieces"
    NOT_IMPLEMENTED = "501 and not passed on"


REFUSALS = {
    Fault.THROTTLED: (503, "SlowDown"),
    Fault.TOO_MANY: (429, "TooManyRequests"),
    Fault.CONFLICT: (409, "ConditionalRequestConflict"),
    Fault.BROKEN: (500, "InternalError"),
    Fault.LATE: (504, "GatewayTimeout"),
    Fault.NOT_IMPLEMENTED: (501, "NotImplemented"),
}

BODY_FAULTS = (Fault.TORN, Fault.SLOW)
"""Faults of an answer with a body, and so of reads."""

EQUAL_WEIGHTS: Mapping[Fault, float] = dict.fromkeys(set(Fault) - {Fault.NOT_IMPLEMENTED}, 1.0)


@dataclass(frozen=True)
class StoredWrite:
    """A write that the server accepted: when the proxy received it, and when it was done."""

    path: str
    received: float
    done: float


class FaultyProxy:
    """A proxy to the URL `target` that injects a fault into a share of `rate`, 0 to 1, of requests.

    `weights` are the relative frequencies of faults; `hits` counts the injected ones by method and
    fault. `faults` go into the next requests, one each, before any is drawn. `stored` is called
    with every write that the server accepted, also where its writer never got the answer.
    """

    def __init__(
        self,
        target: str,
        seed: int,
        rate: float,
        weights: Mapping[Fault, float] = EQUAL_WEIGHTS,
        stored: Callable[[StoredWrite], None] = lambda _: None,
    ) -> None:
        self.rate = rate
        self.requests = 0
        self.faults: deque[Fault] = deque()
        self.hits: Counter[tuple[str, Fault]] = Counter()
        self.late_writes = 0
        """Writes that took effect after their writer had got a 504."""
        self._target = urlsplit(target)
        self._random = random.Random(seed)
        self._weights = weights
        self._stored = stored
        self._serving: set[asyncio.Task[None]] = set()
        self._late: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[Self]:
        """Listen at `endpoint`; late requests are done when the context ends."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        try:
            yield self
        finally:
            self._server.close()
            await asyncio.gather(*self._late, return_exceptions=True)
            for task in self._serving:
                task.cancel()
            await asyncio.gather(*self._serving, return_exceptions=True)

    @property
    def endpoint(self) -> str:
        assert self._server is not None, "it listens"
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        upstream = Upstream(self._target.hostname or "", self._target.port or 80)
        try:
            # A client that is killed in the middle of a request has not made it.
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                while (request := await read_request(reader, writer)) is not None:
                    if not await self._serve(request, upstream, writer):
                        break
        finally:
            upstream.close()
            writer.close()

    async def _serve(
        self, request: Request, upstream: "Upstream", writer: asyncio.StreamWriter
    ) -> bool:
        """Answer a request, and return whether the connection can be used for the next one."""
        self.requests += 1
        received = monotonic()
        fault = self._choose_fault(request)
        if fault is not None and fault not in BODY_FAULTS:
            self.hits[request.method, fault] += 1
        if fault in REFUSALS:
            if fault is Fault.LATE:
                self._forward_late(request, received)
            await _send(writer, refusal(*REFUSALS[fault]))
            return False
        if fault is Fault.LOST:
            _reset(writer)
            return False
        if fault is Fault.DELAYED:
            await asyncio.sleep(self._random.uniform(*REQUEST_DELAY))
        answer = await self._forward(request, upstream, received)
        if fault is Fault.UNANSWERED:
            _reset(writer)
            return False
        if fault in BODY_FAULTS and answer.body:
            self.hits[request.method, fault] += 1
            return await _send_slowly(writer, answer, torn=fault is Fault.TORN)
        await _send(writer, answer.head + answer.body)
        return True

    def _choose_fault(self, request: Request) -> Fault | None:
        if self.faults:
            return self.faults.popleft()
        if self._random.random() >= self.rate:
            return None
        faults = [fault for fault in Fault if request.reads or fault not in BODY_FAULTS]
        weights = [self._weights.get(fault, 0.0) for fault in faults]
        return self._random.choices(faults, weights)[0] if any(weights) else None

    async def _forward(self, request: Request, upstream: "Upstream", received: float) -> Answer:
        answer = await upstream.send(request)
        if request.writes and answer.status < 300:
            self._stored(StoredWrite(request.path, received, monotonic()))
        return answer

    def _forward_late(self, request: Request, received: float) -> None:
        async def carry_out() -> None:
            await asyncio.sleep(LATE_AFTER)
            upstream = Upstream(self._target.hostname or "", self._target.port or 80)
            try:
                answer = await self._forward(request, upstream, received)
                self.late_writes += request.writes and answer.status < 300
            finally:
                upstream.close()

        task = asyncio.create_task(carry_out())
        self._late.add(task)
        task.add_done_callback(self._late.discard)


class Upstream:
    """A connection to the server, made at its first request."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(self, request: Request) -> Answer:
        if self._streams is None:
            self._streams = await asyncio.open_connection(*self._address)
        reader, writer = self._streams
        writer.write(request.head + request.body)
        await writer.drain()
        return await read_answer(reader, request.method)

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()


def refusal(status: int, code: str) -> bytes:
    body = f"<Error><Code>{code}</Code><Message>in trouble</Message></Error>"
    head = f"HTTP/1.1 {status} {code}\r\nContent-Type: application/xml\r\nConnection: close\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()


async def _send(writer: asyncio.StreamWriter, answer: bytes) -> None:
    writer.write(answer)
    await writer.drain()


async def _send_slowly(writer: asyncio.StreamWriter, answer: Answer, *, torn: bool) -> bool:
    """Send the body piece by piece, or the first half of it."""
    if torn:
        await _send(writer, answer.head + answer.body[: len(answer.body) // 2])
        _reset(writer)
        return False
    await _send(writer, answer.head)
    size = len(answer.body) // PIECES + 1
    for start in range(0, len(answer.body), size):
        await asyncio.sleep(PIECE_DELAY)
        await _send(writer, answer.body[start : start + size])
    return True


def _reset(writer: asyncio.StreamWriter) -> None:
    """Reset the connection, as a machine does that no longer knows it."""
    plain: socket.socket = writer.get_extra_info("socket")
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
