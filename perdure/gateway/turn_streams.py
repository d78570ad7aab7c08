"""Turns as server-sent events, in whatever protocol."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, aclosing, suppress
from typing import Any

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

KEEP_ALIVE_SECONDS = 15.0
KEEP_ALIVE = b": keep-alive\n\n"

HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class TurnStream(StreamingResponse):
    """A response of server-sent events; `stack` is closed when it ends, however it does."""

    media_type = "text/event-stream"

    def __init__(
        self, content: AsyncIterator[bytes], stack: ExitStack, headers: dict[str, str]
    ) -> None:
        super().__init__(content, headers={**HEADERS, **headers})
        self._stack = stack

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._stack:
            await super().__call__(scope, receive, send)


def encode_data(event: dict[str, Any]) -> bytes:
    text = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
    return f"data: {text}\n\n".encode()


async def keep_alive(
    events: AsyncGenerator[dict[str, Any], None],
    is_valid: Callable[[], Awaitable[bool]],
    seconds: float = KEEP_ALIVE_SECONDS,
) -> AsyncGenerator[dict[str, Any] | None, None]:
    """Yield events, and None whenever none came for some seconds; end if that `is_valid` no more.

    A credential that was revoked ends a stream so.
    """
    async with aclosing(events):
        while True:
            coming = asyncio.ensure_future(anext(events, None))
            try:
                while not (await asyncio.wait({coming}, timeout=seconds))[0]:
                    if not await is_valid():
                        return
                    yield None
                event = await coming
            finally:
                coming.cancel()
                with suppress(asyncio.CancelledError, Exception):
                    await coming
            if event is None:
                return
            yield event
