"""What the tests of models ask, and servers that answer oddly."""

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

from agent.completion import Completion
from agent.spec import ModelSpec
from models.model import Model, Request
from models.serve import listening

calm = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""For a machine that others use at the same time."""


@contextmanager
def environment(**variables: str | None) -> Iterator[None]:
    """These environment variables while inside; none means that it is not set."""
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


def given(completion: Completion) -> dict[str, Any]:
    """The answer as the next request shows it."""
    message: dict[str, Any] = {"role": "assistant", "content": text_in(completion)}
    if completion.message.tool_calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in completion.message.tool_calls
        ]
    return message


def text_in(completion: Completion) -> str:
    return "".join(part.text for part in completion.message.content if part.type == "text")


async def ask(
    model: Model, spec: ModelSpec, *messages: Mapping[str, Any], shown: list[str] | None = None
) -> Completion:
    """The answer to these messages; `shown` takes the text as it grew."""
    texts: list[str] = [] if shown is None else shown
    return await model.complete(Request(spec, messages or (user("hello"),)), texts.append)


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
        """The model that this server is."""
        routes = [Route("/{path:path}", self.answer, methods=["POST"])]
        async with listening(Starlette(routes=routes)) as address:
            yield ModelSpec(name=name, api_base=f"{address}/v1", **fields)


def completion(message: Mapping[str, Any], **more: Any) -> bytes:
    """A body that was not streamed."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    return json.dumps({"id": "r-1", "model": "odd", "choices": [choice], **more}).encode()


def stream(*deltas: Mapping[str, Any], end: bool = True) -> bytes:
    """A body of server-sent events."""
    chunks: Sequence[Any] = [_chunk(delta, None) for delta in deltas]
    if end:
        chunks = [*chunks, _chunk({}, "stop")]
    return b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks)


def _chunk(delta: Mapping[str, Any], reason: str | None) -> dict[str, Any]:
    return {"id": "r-1", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
