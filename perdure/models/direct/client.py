"""The model that calls a server directly, in the protocol of its API.

litellm takes ten times the CPU for the same request, and its import takes seconds: it is left to
what needs it.
"""

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from perdure.agent.calls.completion import Completion
from perdure.agent.spec import ModelSpec
from perdure.events.usage import Usage
from perdure.models.answer import add_chunk, build_completion, check_complete
from perdure.models.direct.errors import BadStatus, convert_exception
from perdure.models.direct.route import Route
from perdure.models.keys import find_missing_key
from perdure.models.model import ModelError, OnText, Request
from perdure.models.own_server import perdure_headers
from perdure.models.prompt_tools import complete_with_prompt_tools
from perdure.models.provider_errors import missing_key_error
from perdure.models.stream_accumulator import StreamAccumulator

RouteT = TypeVar("RouteT", bound=Route)


class EventReader(Protocol):
    """The reader of one answer's events."""

    def read(self, event: Any) -> Any:
        """Convert an event to a chunk of a chat completion; None if it says nothing."""

    def is_last(self, event: Any) -> bool:
        """Tell whether an event ends the stream, if `[DONE]` does not."""


class Api(Protocol[RouteT]):
    """The protocol of a kind of servers: their addresses, requests, answers and prices."""

    key_variable: str
    """The environment variable with the key."""

    def find_route(self, spec: ModelSpec, variables: Mapping[str, str]) -> RouteT | None:
        """Find the direct route of a model; None if litellm has to be called."""

    def can_write(self, request: Request, route: RouteT) -> bool:
        """Tell whether `write` writes what litellm would send."""

    def write(self, request: Request, route: RouteT, *, stream: bool) -> bytes:
        """Write the body of a request."""

    def headers(self, variables: Mapping[str, str]) -> Mapping[str, str]:
        """Return the headers of a request, with its key."""

    def open_reader(self) -> EventReader: ...

    def list_cost(self, route: RouteT, tokens: Mapping[str, Any], usage: Usage) -> float:
        """Return the cost in US dollars by litellm's list; `tokens` are the answer's own counts."""


class DirectModel(Generic[RouteT]):
    """The model with the spec's `name` at a server that is called without litellm."""

    def __init__(self, api: Api[RouteT]) -> None:
        self.key_variable = api.key_variable
        self._api = api
        self._routes: dict[ModelSpec, RouteT | None] = {}
        self._unstreamed: set[ModelSpec] = set()

    async def serves(self, request: Request) -> bool:
        """Tell whether the request can be sent directly; otherwise litellm has to be called."""
        route = await self._route(request.model)
        return route is not None and self._api.can_write(request, route)

    async def complete(self, request: Request, on_text: OnText) -> Completion:
        """Call the model; the request has to be one that `serves` allows."""
        spec, route = request.model, await self._route(request.model)
        assert route is not None, f"{spec.name} is called through litellm"
        if variable := find_missing_key(spec, os.environ):
            raise missing_key_error(spec.name, variable)
        complete = partial(self._complete, route)
        try:
            if route.capabilities.native_tools:
                return await complete(request, on_text)
            return await complete_with_prompt_tools(complete, request, on_text)
        except ModelError:
            raise
        except Exception as error:
            # Without the cause: its text may hold a key, and the new error has all that matters.
            raise convert_exception(error, spec, self.key_variable) from None

    async def _route(self, spec: ModelSpec) -> RouteT | None:
        """Return the cached route of the model."""
        if spec not in self._routes:
            self._routes[spec] = await asyncio.to_thread(self._load_route, spec)
        return self._routes[spec]

    def _load_route(self, spec: ModelSpec) -> RouteT | None:
        """Find the route (a list of megabytes is read) and import aiohttp where there is one."""
        route = self._api.find_route(spec, os.environ)
        if route is not None:
            import perdure.models.direct.connections  # noqa: F401 - in a thread, as it is slow
        return route

    async def _complete(self, route: RouteT, request: Request, on_text: OnText) -> Completion:
        started = time.monotonic()
        async with asyncio.timeout(request.model.timeout):
            answer = await self._answer(route, request, on_text)
        cost: Callable[[Usage], float] | None = None
        if route.listed:
            cost = partial(self._api.list_cost, route, answer.usage)
        return build_completion(request, answer, time.monotonic() - started, cost)

    async def _answer(self, route: RouteT, request: Request, on_text: OnText) -> StreamAccumulator:
        stream = request.model not in self._unstreamed
        try:
            return await self._ask(route, request, on_text, stream=stream)
        except BadStatus as error:
            if not (stream and error.refuses_streaming):
                raise
        answer = await self._ask(route, request, on_text, stream=False)
        self._unstreamed.add(request.model)
        return answer

    async def _ask(
        self, route: RouteT, request: Request, on_text: OnText, *, stream: bool
    ) -> StreamAccumulator:
        from perdure.models.direct.connections import open_connections  # loads aiohttp

        connections, answer = await open_connections(), StreamAccumulator()
        body, reader = self._api.write(request, route, stream=stream), self._api.open_reader()
        headers = {**COMMON_HEADERS, **self._api.headers(os.environ), **perdure_headers(request)}
        async with aclosing(connections.events(route.url, body, headers, reader.is_last)) as events:
            async for event in events:
                chunk = reader.read(event)
                if chunk is None:
                    continue
                length = len(answer.text)
                add_chunk(answer, chunk, request.model, self.key_variable)
                if len(answer.text) > length:
                    on_text(answer.text)
        check_complete(answer, request.model)
        return answer


COMMON_HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json",
    "User-Agent": "perdure",
}
