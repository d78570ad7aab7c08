"""The model that calls an OpenAI-compatible server directly.

litellm takes ten times the CPU for the same bytes, and its import takes seconds: it is left to the
providers that need it.
"""

import asyncio
import os
import time
from contextlib import aclosing
from functools import partial

from perdure.agent.calls.completion import Completion
from perdure.agent.spec import ModelSpec
from perdure.models.answer import add_chunk, build_completion, check_complete
from perdure.models.keys import find_missing_key
from perdure.models.model import ModelError, OnText, Request
from perdure.models.openai_compatible.body import BodyWriter, are_sent_unchanged
from perdure.models.openai_compatible.errors import KEY_VARIABLE, BadStatus, convert_exception
from perdure.models.openai_compatible.route import Route, find_route, list_cost
from perdure.models.own_server import PLACEHOLDER_KEY, perdure_headers
from perdure.models.prompt_tools import complete_with_prompt_tools
from perdure.models.provider_errors import missing_key_error
from perdure.models.stream_accumulator import StreamAccumulator

HEADER_VARIABLES = {
    "OPENAI_ORG_ID": "OpenAI-Organization",
    "OPENAI_ORGANIZATION": "OpenAI-Organization",
    "OPENAI_PROJECT_ID": "OpenAI-Project",
}
"""Variables that the openai client sends as headers; of two for one header the last is taken."""


class OpenAICompatible:
    """The model with the spec's `name` at OpenAI's, or at an OpenAI-compatible server."""

    def __init__(self) -> None:
        self._routes: dict[ModelSpec, Route | None] = {}
        self._bodies = BodyWriter()
        self._unstreamed: set[ModelSpec] = set()

    async def serves(self, request: Request) -> bool:
        """Tell whether the request can be sent directly; otherwise litellm has to be called."""
        route = await self._route(request.model)
        return route is not None and are_sent_unchanged(request.tools, route.is_openai)

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
            raise convert_exception(error, spec) from None

    async def _route(self, spec: ModelSpec) -> Route | None:
        """Return the cached route of the model."""
        if spec not in self._routes:
            self._routes[spec] = await asyncio.to_thread(_load_route, spec)
        return self._routes[spec]

    async def _complete(self, route: Route, request: Request, on_text: OnText) -> Completion:
        started = time.monotonic()
        async with asyncio.timeout(request.model.timeout):
            answer = await self._answer(route, request, on_text)
        cost = partial(list_cost, route.listed) if route.listed else None
        return build_completion(request, answer, time.monotonic() - started, cost)

    async def _answer(self, route: Route, request: Request, on_text: OnText) -> StreamAccumulator:
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
        self, route: Route, request: Request, on_text: OnText, *, stream: bool
    ) -> StreamAccumulator:
        from perdure.models.openai_compatible.connections import open_connections  # loads aiohttp

        connections, answer = await open_connections(), StreamAccumulator()
        body = self._bodies.write(request, route, stream=stream)
        async with aclosing(connections.chunks(route.url, body, _headers(request))) as chunks:
            async for chunk in chunks:
                length = len(answer.text)
                add_chunk(answer, chunk, request.model, KEY_VARIABLE)
                if len(answer.text) > length:
                    on_text(answer.text)
        check_complete(answer, request.model)
        return answer


def _load_route(spec: ModelSpec) -> Route | None:
    """Find the route (a list of megabytes is read) and import aiohttp where there is one."""
    route = find_route(spec, os.environ)
    if route is not None:
        import perdure.models.openai_compatible.connections  # noqa: F401 - in a thread, as it is slow
    return route


def _headers(request: Request) -> dict[str, str]:
    key = os.environ.get(KEY_VARIABLE, "").strip() or PLACEHOLDER_KEY
    extra = {header: os.environ.get(name) for name, header in HEADER_VARIABLES.items()}
    return {
        "Authorization": f"Bearer {key}",
        "Content-Type": "application/json",
        "Accept": "application/json",
        "User-Agent": "perdure",
        **{header: value for header, value in extra.items() if value},
        **perdure_headers(request),
    }
