"""Answers as their clients take them: what is left of a large one is held, and counted."""

import asyncio
from collections.abc import Iterator

from starlette.requests import HTTPConnection
from starlette.types import Message, Send

from perdure.gateway.edge.audit import PRINCIPAL_KEY
from perdure.gateway.errors import Refused, problem_response
from perdure.gateway.identity.principal import Principal
from perdure.gateway.limits.held_bytes import HeldBytes

PART_BYTES = 64 * 1024
"""The next part of an answer is sent when the client has taken most of the one before."""


class SlowReader(Exception):
    """A client does not take what it is sent: the connection is closed."""


def is_slow_reader(error: Exception) -> bool:
    """Tell whether an error is a SlowReader, or a group of nothing else."""
    if isinstance(error, ExceptionGroup):
        return all(map(is_slow_reader, error.exceptions))
    return isinstance(error, SlowReader)


class LimitedAnswer:
    """The answer of a request.

    A large one is in the place of another user's memory until the client has taken it: where too
    much is under way already, the answer is a problem.
    """

    def __init__(
        self, connection: HTTPConnection, send: Send, held: HeldBytes, timeout: float
    ) -> None:
        self._connection = connection
        self._send = send
        self._held = held
        self._timeout = timeout
        self._start: Message | None = None
        self._is_refused = False
        self._sending = asyncio.Lock()

    async def send(self, message: Message) -> None:
        """Send a message of the application. Raises SlowReader."""
        async with self._sending:
            if self._is_refused:
                return
            if message["type"] == "http.response.start":
                self._start = message  # what it begins may not have room
            elif len(message.get("body", b"")) <= PART_BYTES:
                await self._begin()
                await self._send_in_time(message)
            else:
                await self._send_large(message)

    async def _send_large(self, message: Message) -> None:
        body, who = message["body"], name_holder(self._connection)
        try:
            self._held.hold(who, len(body))
        except Refused as error:
            await self._refuse(error)
            return
        try:
            await self._begin()
            for part, is_last in _split(body):
                more = not is_last or message.get("more_body", False)
                await self._send_in_time({**message, "body": part, "more_body": more})
        finally:
            self._held.release(who, len(body))

    async def _refuse(self, error: Refused) -> None:
        """Answer that there is no room; where the answer has begun, cut the client off."""
        if self._start is None:
            raise SlowReader
        self._is_refused = True
        answer = problem_response(error.status, error.code, error.detail, error.hint, error.headers)
        scope = self._connection.scope
        await answer(scope, _receive_nothing, self._send_in_time)

    async def _begin(self) -> None:
        if self._start is not None:
            start, self._start = self._start, None
            await self._send_in_time(start)

    async def _send_in_time(self, message: Message) -> None:
        try:
            async with asyncio.timeout(self._timeout):
                await self._send(message)
        except TimeoutError as error:
            raise SlowReader from error


def name_holder(connection: HTTPConnection) -> str:
    """Return for whom bytes are held: the user of a request, or else its address."""
    principal = connection.scope.get(PRINCIPAL_KEY)
    if isinstance(principal, Principal):
        return f"user {principal.user_id}"
    return f"address {connection.client.host if connection.client else ''}"


def _split(body: bytes) -> Iterator[tuple[bytes, bool]]:
    """Yield the parts of a body, and whether it is the last one."""
    for start in range(0, len(body), PART_BYTES):
        yield body[start : start + PART_BYTES], start + PART_BYTES >= len(body)


async def _receive_nothing() -> Message:
    return {"type": "http.disconnect"}
