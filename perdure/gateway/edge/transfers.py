"""The limits of what goes over a connection: the size of bodies, the time and the memory for them.

A body of some size is read only from somebody whom the gateway knows, as it would be kept.
"""

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic

from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from perdure.gateway.edge.large_answer import LimitedAnswer, name_holder
from perdure.gateway.errors import EXPECTED, Answer, BodyRefused, answer_problem
from perdure.gateway.limits.held_bytes import HeldBytes

BODY_TIMEOUT = 60.0
"""Seconds for the whole body of a request."""

SEND_TIMEOUT = 30.0
"""Seconds for a client to take the next part of an answer."""

SMALL_BODY = 64 * 1024
"""Bytes of a body that are read from anybody."""

TOO_LARGE = "The body has more than {most:,} bytes, which is the most."
TOO_SLOW = "The body did not come within {seconds:g} s."

Identify = Callable[[HTTPConnection], Awaitable[object]]
"""Finds out who sends a request, and notes it. Raises Refused, ClientError and StoreError."""


class TransferLimits:
    """An application whose requests have bodies of at most `most` bytes, within `body_timeout` s.

    A client that takes no part of an answer for `send_timeout` s is cut off by SlowReader. What is
    held meanwhile is counted in `held`, for whom `identify` finds.
    """

    def __init__(
        self,
        app: ASGIApp,
        most: int,
        identify: Identify,
        held: HeldBytes,
        body_timeout: float = BODY_TIMEOUT,
        send_timeout: float = SEND_TIMEOUT,
        answer: Answer = answer_problem,
    ) -> None:
        self._answer = answer
        self._app = app
        self._most = most
        self._identify = identify
        self._held = held
        self._body_timeout = body_timeout
        self._send_timeout = send_timeout

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        stated = connection.headers.get("content-length", "")
        if stated.isdecimal() and int(stated) > self._most:
            detail = TOO_LARGE.format(most=self._most)
            await self._answer(connection, 413, "too_large", detail)(scope, receive, send)
            return
        answer = LimitedAnswer(connection, send, self._held, self._send_timeout)
        room = _BodyRoom(connection, self._identify, self._held)
        body = _LimitedBody(receive, room, self._most, self._body_timeout)
        try:
            await self._app(scope, body.receive, answer.send)
        finally:
            room.free()


class _BodyRoom:
    """The room that the body of a request takes, once it is large."""

    def __init__(self, connection: HTTPConnection, identify: Identify, held: HeldBytes) -> None:
        self._connection = connection
        self._identify = identify
        self._held = held
        self._who: str | None = None
        self._size = 0

    async def grow(self, size: int) -> None:
        """Take room for a body of so many bytes. Raises BodyRefused."""
        try:
            if self._who is None:
                await self._identify(self._connection)
                self._who = name_holder(self._connection)
            self._held.hold(self._who, size - self._size)
        except EXPECTED as error:
            raise BodyRefused(error) from error
        self._size = size

    def free(self) -> None:
        if self._who is not None and self._size:
            self._held.release(self._who, self._size)


class _LimitedBody:
    """The body of a request as it comes."""

    def __init__(self, receive: Receive, room: _BodyRoom, most: int, timeout: float) -> None:
        self._receive = receive
        self._room = room
        self._most = most
        self._timeout = timeout
        self._ends_at = monotonic() + timeout
        self._size = 0
        self._is_whole = False

    async def receive(self) -> Message:
        """Receive the next part. Raises HTTPException."""
        if self._is_whole:
            return await self._receive()  # waits until the client leaves
        try:
            async with asyncio.timeout(self._ends_at - monotonic()):
                message = await self._receive()
        except TimeoutError as error:
            raise HTTPException(408, TOO_SLOW.format(seconds=self._timeout)) from error
        self._size += len(message.get("body", b""))
        self._is_whole = not message.get("more_body", False)
        if self._size > self._most:
            raise HTTPException(413, TOO_LARGE.format(most=self._most))
        if self._size > SMALL_BODY:
            await self._room.grow(self._size)
        return message
