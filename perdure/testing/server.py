"""An HTTP server that answers from scripts, with the APIs of OpenAI and of Anthropic."""

import asyncio
import hmac
import json
import socket
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, get_args

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from perdure.models.model import NUMBER_HEADER, PURPOSE_HEADER, ModelRefused, Purpose
from perdure.testing.openai_format import Json
from perdure.testing.replies import CallCounter, ReplyResponse, error_response
from perdure.testing.script import Script, ScriptedFailure
from perdure.testing.script_player import ScriptPlayer
from perdure.testing.wire_formats import ANTHROPIC, OPENAI, WireFormat

MAX_KEPT_REQUESTS = 16
"""The number of newest requests that `/requests` returns."""

WRONG_KEY = ScriptedFailure(status=401, code="invalid_api_key")


class ScriptedServer:
    """The routes: /v1/chat/completions, /v1/messages, /v1/models, /calls and /requests."""

    def __init__(self, scripts: Mapping[str, Script], api_key: str | None = None) -> None:
        self.players = {name: ScriptPlayer(script) for name, script in scripts.items()}
        self.api_key = api_key
        self.calls = CallCounter()
        self.requests: deque[Json] = deque(maxlen=MAX_KEPT_REQUESTS)

    def app(self) -> Starlette:
        routes = [
            Route("/v1/chat/completions", self.complete_chat, methods=["POST"]),
            Route("/v1/messages", self.answer_messages, methods=["POST"]),
            Route("/v1/models", self.list_models),
            Route("/calls", self.list_calls),
            Route("/requests", self.list_requests),
        ]
        return Starlette(routes=routes)

    async def complete_chat(self, request: Request) -> Any:
        return await self._answer(request, OPENAI)

    async def answer_messages(self, request: Request) -> Any:
        return await self._answer(request, ANTHROPIC)

    async def _answer(self, request: Request, wire: WireFormat) -> Any:
        if not self._is_authorized(request):
            return error_response(WRONG_KEY, wire)
        body = _parse_object(await request.body())
        if fault := wire.find_fault(body):
            return error_response(ScriptedFailure(status=400, message=fault), wire)
        model = str(body["model"])
        player = self.players.get(model.rpartition("/")[2])
        if player is None:
            message = f"The model {model} does not exist; there are: {', '.join(self.players)}."
            code = "model_not_found"
            return error_response(ScriptedFailure(status=404, message=message, code=code), wire)
        self.requests.append(body)
        number = request.headers.get(NUMBER_HEADER, "")
        purpose = request.headers.get(PURPOSE_HEADER)  # an unknown one is the conversation itself
        try:
            reply = player.next_reply(
                wire.read_messages(body),
                next((item for item in get_args(Purpose) if item == purpose), ""),
                int(number) if number.isdecimal() else None,
            )
        except ModelRefused as error:
            failure = ScriptedFailure(status=400, message=str(error), code=error.code)
            return error_response(failure, wire)
        return ReplyResponse(reply, self.calls, body, wire)

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
        key = request.headers.get("x-api-key")
        header = request.headers.get("authorization", f"Bearer {key}").encode()
        expected = f"Bearer {self.api_key}".encode()
        return self.api_key is None or hmac.compare_digest(header, expected)


def _parse_object(text: bytes) -> Json:
    """Parse the body of a request; empty if it is no JSON object."""
    try:
        body = json.loads(text)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


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
    """Serve scripts in the context; yield the URL. Port 0 picks a free one. Raises OSError.

    The URL is that of the OpenAI-compatible API; that of Anthropic's is the one without `/v1`.
    """
    async with serve_app(ScriptedServer(scripts, api_key).app(), host, port) as address:
        yield f"{address}/v1"


@asynccontextmanager
async def serve_app(app: ASGIApp, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[str]:
    """Serve an application within the context, and yield its URL; port 0 picks a free one."""
    with socket.create_server((host, port), backlog=2048) as listener:
        async with serve_listener(app, listener):
            yield f"http://{host}:{listener.getsockname()[1]}"


@asynccontextmanager
async def serve_listener(app: ASGIApp, listener: socket.socket) -> AsyncIterator[None]:
    """Serve an application at a listening socket within the context."""
    config = uvicorn.Config(
        app, log_config=None, log_level="critical", lifespan="off", timeout_graceful_shutdown=0
    )
    server = _QuietServer(config)
    # asyncio sets it only on sockets with an explicit protocol; without it the next piece of a
    # stream waits 40 ms for the acknowledgement of the one before.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    running = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield
    finally:
        server.should_exit = True
        await running
