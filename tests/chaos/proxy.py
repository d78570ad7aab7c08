"""A network that fails by chance: an HTTP/1.1 proxy before an S3 server.

Bytes are handed on as they came, the `Host` header too, so that signatures stay valid. What befalls
a request is drawn from a seed; what did befall one is counted.
"""

import asyncio
import contextlib
import random
import socket
import struct
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from time import monotonic
from typing import Self
from urllib.parse import urlsplit

from tests.chaos.http import Answer, Request, read_answer, read_request

DELAY = (0.1, 1.0)
"""Seconds, from and to, of a request on its way."""

LATE = 1.0
"""Seconds after its 504 at which a request is carried out all the same."""

PIECES = 5
PIECE = 0.15
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


REFUSALS = {
    Fault.THROTTLED: (503, "SlowDown"),
    Fault.TOO_MANY: (429, "TooManyRequests"),
    Fault.CONFLICT: (409, "ConditionalRequestConflict"),
    Fault.BROKEN: (500, "InternalError"),
    Fault.LATE: (504, "GatewayTimeout"),
}

WITH_A_BODY = (Fault.TORN, Fault.SLOW)
"""Befall an answer that has one: reads."""

OFTEN: Mapping[Fault, float] = dict.fromkeys(Fault, 1.0)


@dataclass(frozen=True)
class Stored:
    """A write that the server has taken: when it reached the proxy, and when it was done."""

    path: str
    received: float
    done: float


class FaultyProxy:
    """In front of `target`, a URL; a `rate` of 0 to 1 of the requests is in trouble.

    `weights` say how often each fault is drawn; `hits` counts those that really befell a request,
    by its method too. `stored` is told of every write the server took, those whose writer never
    heard of it among them.
    """

    def __init__(
        self,
        target: str,
        seed: int,
        rate: float,
        weights: Mapping[Fault, float] = OFTEN,
        stored: Callable[[Stored], None] = lambda _: None,
    ) -> None:
        self.rate = rate
        self.asked = 0
        self.hits: Counter[tuple[str, Fault]] = Counter()
        self.late_writes = 0
        """Writes that took effect after their writer had been told of a time-out."""
        self._target = urlsplit(target)
        self._chance = random.Random(seed)
        self._weights = weights
        self._stored = stored
        self._serving: set[asyncio.Task[None]] = set()
        self._late: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[Self]:
        """While inside, `endpoint` is a URL that answers. What is late is done when it ends."""
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
        """Whether the connection can be used for the next request."""
        self.asked += 1
        received = monotonic()
        fault = self._fate(request)
        if fault is not None and fault not in WITH_A_BODY:
            self.hits[request.method, fault] += 1
        if fault in REFUSALS:
            if fault is Fault.LATE:
                self._later(request, received)
            await _send(writer, refusal(*REFUSALS[fault]))
            return False
        if fault is Fault.LOST:
            _reset(writer)
            return False
        if fault is Fault.DELAYED:
            await asyncio.sleep(self._chance.uniform(*DELAY))
        answer = await self._passed_on(request, upstream, received)
        if fault is Fault.UNANSWERED:
            _reset(writer)
            return False
        if fault in WITH_A_BODY and answer.body:
            self.hits[request.method, fault] += 1
            return await _dragged(writer, answer, torn=fault is Fault.TORN)
        await _send(writer, answer.head + answer.body)
        return True

    def _fate(self, request: Request) -> Fault | None:
        if self._chance.random() >= self.rate:
            return None
        faults = [fault for fault in Fault if request.reads or fault not in WITH_A_BODY]
        weights = [self._weights.get(fault, 0.0) for fault in faults]
        return self._chance.choices(faults, weights)[0] if any(weights) else None

    async def _passed_on(self, request: Request, upstream: "Upstream", received: float) -> Answer:
        answer = await upstream.ask(request)
        if request.writes and answer.status < 300:
            self._stored(Stored(request.path, received, monotonic()))
        return answer

    def _later(self, request: Request, received: float) -> None:
        async def carry_out() -> None:
            await asyncio.sleep(LATE)
            upstream = Upstream(self._target.hostname or "", self._target.port or 80)
            try:
                answer = await self._passed_on(request, upstream, received)
                self.late_writes += request.writes and answer.status < 300
            finally:
                upstream.close()

        task = asyncio.create_task(carry_out())
        self._late.add(task)
        task.add_done_callback(self._late.discard)


class Upstream:
    """A connection to the server, made when it is first asked."""

    def __init__(self, host: str, port: int) -> None:
        self._place = (host, port)
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, request: Request) -> Answer:
        if self._streams is None:
            self._streams = await asyncio.open_connection(*self._place)
        reader, writer = self._streams
        writer.write(request.head + request.body)
        await writer.drain()
        return await read_answer(reader, request.method)

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()


def refusal(status: int, code: str) -> bytes:
    said = f"<Error><Code>{code}</Code><Message>in trouble</Message></Error>"
    head = f"HTTP/1.1 {status} {code}\r\nContent-Type: application/xml\r\nConnection: close\r\n"
    return f"{head}Content-Length: {len(said)}\r\n\r\n{said}".encode()


async def _send(writer: asyncio.StreamWriter, answer: bytes) -> None:
    writer.write(answer)
    await writer.drain()


async def _dragged(writer: asyncio.StreamWriter, answer: Answer, *, torn: bool) -> bool:
    """Send the body piece by piece, or the first half of it."""
    if torn:
        await _send(writer, answer.head + answer.body[: len(answer.body) // 2])
        _reset(writer)
        return False
    await _send(writer, answer.head)
    size = len(answer.body) // PIECES + 1
    for start in range(0, len(answer.body), size):
        await asyncio.sleep(PIECE)
        await _send(writer, answer.body[start : start + size])
    return True


def _reset(writer: asyncio.StreamWriter) -> None:
    """End the connection as a machine does that has forgotten it."""
    plain: socket.socket = writer.get_extra_info("socket")
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
