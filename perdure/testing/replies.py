"""The responses of the scripted server, and the counts of them."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

from perdure.testing.openai_format import Json
from perdure.testing.script import ScriptedFailure
from perdure.testing.script_player import ScriptedReply
from perdure.testing.wire_formats import OPENAI, WireFormat

OUTCOMES = ("requested", "answered", "disconnected")


class CallCounter:
    """Counts of how often each answer was requested, sent whole, and abandoned by its caller."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, int, str]] = Counter()

    def count(self, reply: ScriptedReply, outcome: str) -> None:
        """Count one of the `OUTCOMES`."""
        self._counts[reply.label, reply.number + 1, outcome] += 1

    def as_json(self) -> Json:
        """Return one item per answer; answers are numbered from 1."""
        seen = sorted({(script, number) for script, number, _ in self._counts})
        return {
            "calls": [
                {
                    "script": script,
                    "answer": number,
                    **{outcome: self._counts[script, number, outcome] for outcome in OUTCOMES},
                }
                for script, number in seen
            ]
        }


@dataclass
class ReplyResponse:
    """The response to one call, as an ASGI application that detects when the caller hangs up."""

    reply: ScriptedReply
    calls: CallCounter
    body: Json
    """The request's body."""
    wire: WireFormat = OPENAI

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.calls.count(self.reply, "requested")
        work = asyncio.ensure_future(self._respond(scope, receive, send))
        disconnect = asyncio.ensure_future(_await_disconnect(receive))
        try:
            await asyncio.wait((work, disconnect), return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                work.result()
            else:
                self.calls.count(self.reply, "disconnected")
        finally:
            work.cancel()
            disconnect.cancel()

    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        failure = self.reply.failure
        if failure is None:
            await asyncio.sleep(self.reply.answer.delay)
            await self._send_answer(send)
            return
        await asyncio.sleep(failure.delay)
        if failure.hang:
            await asyncio.Event().wait()
        elif failure.disconnect:
            await self._send_half(send)
        elif failure.partial and self._is_stream:
            await self._send_half(send)
            event = self.wire.error_event(failure)
            await send({"type": "http.response.body", "body": event})
        elif failure.malformed:
            await Response('{"choices": [', media_type="application/json")(scope, receive, send)
        else:
            await error_response(failure, self.wire)(scope, receive, send)

    async def _send_answer(self, send: Send) -> None:
        await self._send_head(send)
        for part in self._body_parts():
            await send({"type": "http.response.body", "body": part, "more_body": True})
            await asyncio.sleep(self.reply.answer.chunk_delay)
        # Counted before the end is sent, so that a caller with the whole answer finds it counted.
        self.calls.count(self.reply, "answered")
        await send({"type": "http.response.body", "body": b""})

    async def _send_half(self, send: Send) -> None:
        """Send half of the answer; if nothing follows, uvicorn closes the connection."""
        parts = list(self._body_parts())
        half = parts[: len(parts) // 2] or [parts[0][: len(parts[0]) // 2]]
        await self._send_head(send)
        for part in half:
            await send({"type": "http.response.body", "body": part, "more_body": True})

    async def _send_head(self, send: Send) -> None:
        content_type = b"text/event-stream" if self._is_stream else b"application/json"
        headers = [(b"content-type", content_type)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})

    def _body_parts(self) -> Iterator[bytes]:
        if self._is_stream:
            return self.wire.stream(self.reply, self.body)
        return iter((self.wire.whole(self.reply),))

    @property
    def _is_stream(self) -> bool:
        return self.body.get("stream") is True


async def _await_disconnect(receive: Receive) -> None:
    """Return when the caller has disconnected."""
    message: Message = {}
    while message.get("type") != "http.disconnect":
        message = await receive()


def error_response(failure: ScriptedFailure, wire: WireFormat = OPENAI) -> Response:
    headers = {} if failure.retry_after is None else {"Retry-After": str(failure.retry_after)}
    return JSONResponse(wire.error(failure), status_code=failure.status, headers=headers)
