"""An OpenAI-compatible HTTP server that answers from scripts."""

import asyncio
import hmac
import json
import socket
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, get_args
from uuid import uuid4

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from models import wire
from models.model import NUMBER_HEADER, PURPOSE_HEADER, ModelRefused, Purpose
from models.playback import Cue, Playback
from models.script import Failure, Script

KEPT = 16
"""How many of the newest requests can be looked at."""


class Calls:
    """How often each answer was asked for, given whole, and abandoned by its caller."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, int, str]] = Counter()

    def note(self, cue: Cue, outcome: str) -> None:
        """Count one `outcome`: requested, answered or disconnected."""
        self._counts[cue.label, cue.number + 1, outcome] += 1

    def as_json(self) -> wire.Json:
        """One item an answer; answers are counted from 1."""
        seen = sorted({(script, number) for script, number, _ in self._counts})
        return {
            "calls": [
                {
                    "script": script,
                    "answer": number,
                    "requested": self._counts[script, number, "requested"],
                    "answered": self._counts[script, number, "answered"],
                    "disconnected": self._counts[script, number, "disconnected"],
                }
                for script, number in seen
            ]
        }


class Reply:
    """The response to one call, as an ASGI application: it notices when the caller hangs up."""

    def __init__(self, cue: Cue, calls: Calls, stream: bool, include_usage: bool) -> None:
        self.cue = cue
        self.calls = calls
        self.stream = stream
        self.include_usage = include_usage

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.calls.note(self.cue, "requested")
        work = asyncio.ensure_future(self._perform(scope, receive, send))
        gone = asyncio.ensure_future(_disconnected(receive))
        try:
            await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                work.result()
            else:
                self.calls.note(self.cue, "disconnected")
        finally:
            work.cancel()
            gone.cancel()

    async def _perform(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Give the answer, or the failure that comes before it."""
        failure = self.cue.failure
        if failure is None:
            await asyncio.sleep(self.cue.answer.delay)
            await self._answer(send)
            return
        await asyncio.sleep(failure.delay)
        if failure.hang:
            await asyncio.Event().wait()
        elif failure.disconnect:
            await self._begin(send)
        elif failure.partial and self.stream:
            await self._begin(send)
            event = f"data: {json.dumps(wire.error_in_stream(failure))}\n\n".encode()
            await send({"type": "http.response.body", "body": event})
        elif failure.malformed:
            await Response('{"choices": [', media_type="application/json")(scope, receive, send)
        else:
            await refusal(failure)(scope, receive, send)

    async def _answer(self, send: Send) -> None:
        await self._start(send)
        for part in self._parts():
            await send({"type": "http.response.body", "body": part, "more_body": True})
            await asyncio.sleep(self.cue.answer.chunk_delay)
        # Before the end is sent, so that whoever has the answer finds it counted.
        self.calls.note(self.cue, "answered")
        await send({"type": "http.response.body", "body": b""})

    async def _begin(self, send: Send) -> None:
        """Send half of the answer; where that is all, uvicorn closes the connection."""
        parts = list(self._parts())
        half = parts[: len(parts) // 2] or [parts[0][: len(parts[0]) // 2]]
        await self._start(send)
        for part in half:
            await send({"type": "http.response.body", "body": part, "more_body": True})

    async def _start(self, send: Send) -> None:
        kind = b"text/event-stream" if self.stream else b"application/json"
        headers = [(b"content-type", kind)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})

    def _parts(self) -> Iterator[bytes]:
        response_id, created = f"chatcmpl-{uuid4().hex}", int(time.time())
        if not self.stream:
            yield json.dumps(wire.completion(self.cue, response_id, created)).encode()
            return
        for chunk in wire.chunks(self.cue, response_id, created, self.include_usage):
            yield f"data: {json.dumps(chunk)}\n\n".encode()
        yield b"data: [DONE]\n\n"


async def _disconnected(receive: Receive) -> None:
    """Return when the caller is gone."""
    message: Message = {}
    while message.get("type") != "http.disconnect":
        message = await receive()


def refusal(failure: Failure) -> Response:
    """An error in OpenAI's format."""
    headers = {} if failure.retry_after is None else {"Retry-After": str(failure.retry_after)}
    return JSONResponse(wire.error(failure), status_code=failure.status, headers=headers)


class ScriptedServer:
    """The routes: /v1/chat/completions, /v1/models, /calls and /requests."""

    def __init__(self, scripts: Mapping[str, Script], api_key: str | None = None) -> None:
        self.playbacks = {name: Playback(script) for name, script in scripts.items()}
        self.api_key = api_key
        self.calls = Calls()
        self.bodies: deque[wire.Json] = deque(maxlen=KEPT)

    def app(self) -> Starlette:
        """The ASGI application."""
        return Starlette(
            routes=[
                Route("/v1/chat/completions", self.chat, methods=["POST"]),
                Route("/v1/models", self.models),
                Route("/calls", self.counted),
                Route("/requests", self.asked),
            ]
        )

    async def chat(self, request: Request) -> Any:
        """Give the answer that the conversation in the request is due."""
        if not self._admits(request):
            return refusal(Failure(status=401, code="invalid_api_key"))
        body = _chat_body(await request.body())
        if body is None:
            message = "The body must be a JSON object with a model and a list of messages."
            return refusal(Failure(status=400, message=message))
        playback = self.playbacks.get(str(body["model"]).rpartition("/")[2])
        if playback is None:
            return refusal(self._unknown(str(body["model"])))
        self.bodies.append(body)
        number = request.headers.get(NUMBER_HEADER, "")
        try:
            cue = playback.cue(
                body["messages"],
                _purpose(request.headers.get(PURPOSE_HEADER, "")),
                int(number) if number.isdecimal() else None,
            )
        except ModelRefused as error:
            return refusal(Failure(status=400, message=str(error), code=error.code))
        include_usage = bool((body.get("stream_options") or {}).get("include_usage"))
        return Reply(cue, self.calls, body.get("stream") is True, include_usage)

    async def models(self, request: Request) -> Response:
        """List the scripts as models."""
        if not self._admits(request):
            return refusal(Failure(status=401, code="invalid_api_key"))
        items = [{"id": name, "object": "model", "owned_by": "perdure"} for name in self.playbacks]
        return JSONResponse({"object": "list", "data": items})

    async def counted(self, _: Request) -> Response:
        """How often each answer was paid for."""
        return JSONResponse(self.calls.as_json())

    async def asked(self, request: Request) -> Response:
        """The newest requests, the oldest of them first, as they came."""
        if not self._admits(request):
            return refusal(Failure(status=401, code="invalid_api_key"))
        return JSONResponse({"requests": list(self.bodies)})

    def _admits(self, request: Request) -> bool:
        given = request.headers.get("authorization", "").encode()
        return self.api_key is None or hmac.compare_digest(given, f"Bearer {self.api_key}".encode())

    def _unknown(self, model: str) -> Failure:
        message = f"The model {model} does not exist; there are: {', '.join(self.playbacks)}."
        return Failure(status=404, message=message, code="model_not_found")


def _purpose(told: str) -> Purpose:
    """What the request is for; what nobody here knows is for the conversation."""
    known: tuple[Purpose, ...] = get_args(Purpose)
    return next((each for each in known if each == told), "")


def _chat_body(text: bytes) -> wire.Json | None:
    """The request's object, or none where it is not a chat request."""
    try:
        body = json.loads(text)
    except ValueError:
        return None
    fits = isinstance(body, dict) and "model" in body and isinstance(body.get("messages"), list)
    return body if fits and all(isinstance(each, dict) for each in body["messages"]) else None


class _QuietServer(uvicorn.Server):
    """Leaves the signals to the program it runs in."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def serve(
    scripts: Mapping[str, Script],
    host: str = "127.0.0.1",
    port: int = 0,
    api_key: str | None = None,
) -> AsyncIterator[str]:
    """Serve the scripts while inside; gives the base URL for a client. Port 0 is a free one.

    Raises OSError where the port is taken.
    """
    async with listening(ScriptedServer(scripts, api_key).app(), host, port) as address:
        yield f"{address}/v1"


@asynccontextmanager
async def listening(app: ASGIApp, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[str]:
    """Serve an application while inside; gives its address. Port 0 is a free one."""
    config = uvicorn.Config(
        app,
        log_config=None,
        log_level="critical",
        lifespan="off",
        timeout_graceful_shutdown=0,
    )
    server = _QuietServer(config)
    with socket.create_server((host, port), backlog=2048) as listener:
        running = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield f"http://{host}:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            await running
