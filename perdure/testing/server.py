"""An OpenAI-compatible HTTP server that answers from scripts."""

import asyncio
import hmac
import json
import socket
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, get_args
from uuid import uuid4

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from perdure.models.model import NUMBER_HEADER, PURPOSE_HEADER, ModelRefused, Purpose
from perdure.testing import openai_format
from perdure.testing.script import Script, ScriptedFailure
from perdure.testing.script_player import ScriptedReply, ScriptPlayer

MAX_KEPT_REQUESTS = 16
"""The number of newest requests that `/requests` returns."""


OUTCOMES = ("requested", "answered", "disconnected")


class CallCounter:
    """Counts of how often each answer was requested, sent whole, and abandoned by its caller."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, int, str]] = Counter()

    def count(self, reply: ScriptedReply, outcome: str) -> None:
        """Count one of the `OUTCOMES`."""
        self._counts[reply.label, reply.number + 1, outcome] += 1

    def as_json(self) -> openai_format.Json:
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
    stream: bool
    include_usage: bool

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
        elif failure.partial and self.stream:
            await self._send_half(send)
            event = f"data: {json.dumps(openai_format.error_in_stream(failure))}\n\n".encode()
            await send({"type": "http.response.body", "body": event})
        elif failure.malformed:
            await Response('{"choices": [', media_type="application/json")(scope, receive, send)
        else:
            await error_response(failure)(scope, receive, send)

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
        content_type = b"text/event-stream" if self.stream else b"application/json"
        headers = [(b"content-type", content_type)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})

    def _body_parts(self) -> Iterator[bytes]:
        response_id, created = f"chatcmpl-{uuid4().hex}", int(time.time())
        if not self.stream:
            yield json.dumps(openai_format.completion(self.reply, response_id, created)).encode()
            return
        for chunk in openai_format.chunks(self.reply, response_id, created, self.include_usage):
            yield f"data: {json.dumps(chunk)}\n\n".encode()
        yield b"data: [DONE]\n\n"


async def _await_disconnect(receive: Receive) -> None:
    """Return when the caller has disconnected."""
    message: Message = {}
    while message.get("type") != "http.disconnect":
        message = await receive()


def error_response(failure: ScriptedFailure) -> Response:
    headers = {} if failure.retry_after is None else {"Retry-After": str(failure.retry_after)}
    return JSONResponse(openai_format.error(failure), status_code=failure.status, headers=headers)


WRONG_KEY = ScriptedFailure(status=401, code="invalid_api_key")


class ScriptedServer:
    """The routes: /v1/chat/completions, /v1/models, /calls and /requests."""

    def __init__(self, scripts: Mapping[str, Script], api_key: str | None = None) -> None:
        self.players = {name: ScriptPlayer(script) for name, script in scripts.items()}
        self.api_key = api_key
        self.calls = CallCounter()
        self.requests: deque[openai_format.Json] = deque(maxlen=MAX_KEPT_REQUESTS)

    def app(self) -> Starlette:
        routes = [
            Route("/v1/chat/completions", self.complete_chat, methods=["POST"]),
            Route("/v1/models", self.list_models),
            Route("/calls", self.list_calls),
            Route("/requests", self.list_requests),
        ]
        return Starlette(routes=routes)

    async def complete_chat(self, request: Request) -> Any:
        if not self._is_authorized(request):
            return error_response(WRONG_KEY)
        body = _parse_chat_body(await request.body())
        if body is None:
            message = "The body must be a JSON object with a model and a list of messages."
            return error_response(ScriptedFailure(status=400, message=message))
        model = str(body["model"])
        player = self.players.get(model.rpartition("/")[2])
        if player is None:
            message = f"The model {model} does not exist; there are: {', '.join(self.players)}."
            code = "model_not_found"
            return error_response(ScriptedFailure(status=404, message=message, code=code))
        self.requests.append(body)
        number = request.headers.get(NUMBER_HEADER, "")
        purpose = request.headers.get(PURPOSE_HEADER)  # an unknown one is the conversation itself
        try:
            reply = player.next_reply(
                body["messages"],
                next((item for item in get_args(Purpose) if item == purpose), ""),
                int(number) if number.isdecimal() else None,
            )
        except ModelRefused as error:
            return error_response(ScriptedFailure(status=400, message=str(error), code=error.code))
        include_usage = bool((body.get("stream_options") or {}).get("include_usage"))
        return ReplyResponse(reply, self.calls, body.get("stream") is True, include_usage)

    async def list_models(self, request: Request) -> Response:
        if not self._is_authorized(request):
            return error_response(WRONG_KEY)
        items = [{"id": name, "object": "model", "owned_by": "perdure"} for name in self.players]
        return JSONResponse({"object": "list", "data": items})

    async def list_calls(self, _: Request) -> Response:
        return JSONResponse(self.calls.as_json())

    async def list_requests(self, request: Request) -> Response:
        """Return the bodies of the newest requests, oldest first."""
        if not self._is_authorized(request):
            return error_response(WRONG_KEY)
        return JSONResponse({"requests": list(self.requests)})

    def _is_authorized(self, request: Request) -> bool:
        header = request.headers.get("authorization", "").encode()
        expected = f"Bearer {self.api_key}".encode()
        return self.api_key is None or hmac.compare_digest(header, expected)


def _parse_chat_body(text: bytes) -> openai_format.Json | None:
    """Parse the body of a chat request; None if it is not valid."""
    try:
        body = json.loads(text)
    except ValueError:
        return None
    valid = isinstance(body, dict) and "model" in body and isinstance(body.get("messages"), list)
    return body if valid and all(isinstance(item, dict) for item in body["messages"]) else None


class _QuietServer(uvicorn.Server):
    """A server that installs no signal handlers in the program it runs in."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def serve_scripts(
    scripts: Mapping[str, Script],
    host: str = "127.0.0.1",
    port: int = 0,
    api_key: str | None = None,
) -> AsyncIterator[str]:
    """Serve scripts in the context; yield the URL. Port 0 picks a free one. Raises OSError."""
    async with serve_app(ScriptedServer(scripts, api_key).app(), host, port) as address:
        yield f"{address}/v1"


@asynccontextmanager
async def serve_app(app: ASGIApp, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[str]:
    """Serve an application within the context, and yield its URL; port 0 picks a free one."""
    config = uvicorn.Config(
        app, log_config=None, log_level="critical", lifespan="off", timeout_graceful_shutdown=0
    )
    server = _QuietServer(config)
    with socket.create_server((host, port), backlog=2048) as listener:
        # asyncio sets it only on sockets with an explicit protocol; without it the next piece of
        # a stream waits 40 ms for the acknowledgement of the one before.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        running = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield f"http://{host}:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            await running
