"""Requests for the tests of models, and servers with fixed answers."""

import json
import os
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, settings
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route

from perdure.agent.calls.completion import Completion
from perdure.agent.spec import ModelSpec
from perdure.models.model import Model, Request
from perdure.testing.server import serve_app

calm = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""Hypothesis settings for a loaded machine."""


@contextmanager
def environment(**variables: str | None) -> Iterator[None]:
    """Set environment variables within the context; None unsets one."""
    before = {name: os.environ.get(name) for name in variables}
    _set(variables)
    try:
        yield
    finally:
        _set(before)


def _set(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def to_message(completion: Completion) -> dict[str, Any]:
    """Convert an answer to the message of the next request, with arguments that are JSON."""
    message: dict[str, Any] = {"role": "assistant", "content": text_in(completion)}
    if completion.message.tool_calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": _valid(call.arguments)},
            }
            for call in completion.message.tool_calls
        ]
    return message


def _valid(arguments: str) -> str:
    try:
        json.loads(arguments)
    except ValueError:
        return "{}"
    return arguments


def text_in(completion: Completion) -> str:
    return "".join(part.text for part in completion.message.content if part.type == "text")


async def ask(
    model: Model, spec: ModelSpec, *messages: Mapping[str, Any], texts: list[str] | None = None
) -> Completion:
    """Call the model with these messages; `texts` collects the growing text."""
    growth: list[str] = [] if texts is None else texts
    return await model.complete(Request(spec, messages or (user("hello"),)), growth.append)


@dataclass
class Fixed:
    """A server that answers every request alike, and keeps what it was sent."""

    body: bytes
    content_type: str = "application/json"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    requests: list[tuple[dict[str, str], bytes]] = field(default_factory=list)

    async def answer(self, request: HttpRequest) -> Response:
        self.requests.append((dict(request.headers), await request.body()))
        headers = {"content-type": self.content_type, **self.headers}
        return Response(self.body, self.status, headers)

    @asynccontextmanager
    async def spec(self, name: str = "openai/odd", **fields: Any) -> AsyncIterator[ModelSpec]:
        """Serve within the context, and yield the model's spec."""
        routes = [Route("/{path:path}", self.answer, methods=["POST"])]
        async with serve_app(Starlette(routes=routes)) as address:
            yield ModelSpec(name=name, api_base=f"{address}/v1", **fields)


def completion(message: Mapping[str, Any], **more: Any) -> bytes:
    """Build a body that is not streamed."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    return json.dumps({"id": "r-1", "model": "odd", "choices": [choice], **more}).encode()


def stream(*deltas: Mapping[str, Any], end: bool = True) -> bytes:
    """Build a body of server-sent events."""
    chunks: Sequence[Any] = [_chunk(delta, None) for delta in deltas]
    if end:
        chunks = [*chunks, _chunk({}, "stop")]
    return b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks)


def _chunk(delta: Mapping[str, Any], reason: str | None) -> dict[str, Any]:
    return {"id": "r-1", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
