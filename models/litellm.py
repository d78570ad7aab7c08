"""Answers from any provider, through litellm."""

import asyncio
import copy
import importlib
import importlib.util
import json
import logging
import os
import sys
import time
import warnings
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from agent.completion import Completion
from agent.spec import ModelSpec
from models.assembly import Assembly, Json, usage_of
from models.evidence import cannot_stream, error_in_answer, error_of
from models.features import Features
from models.fitting import fitted, lacks_thinking
from models.model import ModelError, ModelRefused, ModelUnavailable, OnText, Request
from models.prompted import through_prompt
from models.route import Route, call_ids, headers_of, route_of, travels_as_it_is
from models.sse import events

PLACEHOLDER: list[dict[str, str]] = [{"role": "user", "content": "-"}]
"""Stands in for messages that travel in `extra_body`."""

ENVIRONMENT = {
    # The price list that came with the package: litellm would fetch a newer one, and wait for it.
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    # In its "DEV" mode litellm reads whatever .env file it finds above the working directory.
    "LITELLM_MODE": "PRODUCTION",
}


class LiteLLM:
    """The model that a spec's `name` means to litellm.

    Retries are the caller's: litellm's own are off. Keys are read from the environment variables
    that litellm documents for each provider.
    """

    def __init__(self) -> None:
        self._loading = asyncio.Lock()
        self._library: Any = None
        self.routes: dict[ModelSpec, Route] = {}
        self._unstreamed: set[ModelSpec] = set()

    async def complete(self, request: Request, on_text: OnText) -> Completion:
        spec, before = request.model, sys.exception()
        try:
            route = await self._route(spec)
            if route.features.native_tools:
                return await self._complete(request, on_text)
            return await through_prompt(self._complete, request, on_text)
        except ModelError:
            raise
        except TimeoutError:
            what = f"{spec.name} gave no answer in {spec.timeout:g} s: raise its timeout."
            raise ModelUnavailable("timeout", what) from None
        except Exception as error:  # litellm's adapters raise whatever their providers provoke
            # Without the cause: its text may hold a key, and ours says what matters of it.
            raise error_of(error, spec, self._key_variable(spec), before) from None

    def context_window(self, name: str) -> int | None:
        """The tokens a prompt may have, if litellm is in use and lists the model."""
        listed = self._library.model_cost if self._library is not None else {}
        known = listed.get(name) or listed.get(name.partition("/")[2]) or {}
        window: int | None = known.get("max_input_tokens")
        return window

    async def _complete(self, request: Request, on_text: OnText) -> Completion:
        litellm, started = await self._loaded(), time.monotonic()
        async with asyncio.timeout(request.model.timeout):
            answer = await self._answer(litellm, request, on_text)
        return self._completion(litellm, request, answer, time.monotonic() - started)

    async def _route(self, spec: ModelSpec) -> Route:
        """How the model is reached, found out once: for some, litellm asks their server."""
        if spec not in self.routes:
            self.routes[spec] = await asyncio.to_thread(route_of, await self._loaded(), spec)
        return self.routes[spec]

    async def _loaded(self) -> Any:
        async with self._loading:
            if self._library is None:
                self._library = await asyncio.to_thread(_import)
            return self._library

    async def _answer(self, litellm: Any, request: Request, on_text: OnText) -> Assembly:
        if request.model not in self._unstreamed:
            try:
                return await self._streamed(litellm, request, on_text)
            except Exception as error:
                if not cannot_stream(error):
                    raise
        answer = await self._whole(litellm, request)
        self._unstreamed.add(request.model)
        if answer.text:
            on_text(answer.text)
        return answer

    async def _streamed(self, litellm: Any, request: Request, on_text: OnText) -> Assembly:
        options = {"stream": True, "stream_options": {"include_usage": True}}
        stream = await litellm.acompletion(**self._arguments(request), **options)
        answer = Assembly()
        response = _response_behind(stream)
        try:
            chunks = _wrapped(stream) if response is None else _received(response)
            async with aclosing(chunks):
                async for chunk in chunks:
                    shown = len(answer.text)
                    self._add(answer, chunk, request.model)
                    if len(answer.text) > shown:
                        on_text(answer.text)
        finally:
            await stream.aclose()
        if response is None and answer.empty and stream.received_finish_reason is None:
            # litellm's wrapper ends a body that was no stream as if it were an answer.
            answer.answered = False
        return _complete(answer, request.model)

    async def _whole(self, litellm: Any, request: Request) -> Assembly:
        response = await litellm.acompletion(**self._arguments(request))
        answer = Assembly()
        self._add(answer, response.model_dump(exclude_none=True), request.model)
        return _complete(answer, request.model)

    def _add(self, answer: Assembly, chunk: Any, spec: ModelSpec) -> None:
        if not isinstance(chunk, dict):
            what = f"{spec.name} answered with no JSON object: try again later."
            raise ModelUnavailable("malformed", what)
        if chunk.get("error"):
            raise error_in_answer(chunk["error"], spec, self._key_variable(spec))
        answer.add(chunk)

    def _arguments(self, request: Request) -> dict[str, Any]:
        spec, route = request.model, self.routes[request.model]
        messages = fitted(request.messages, route.features)
        effort = _effort(request, route.features)
        # To Claude, when it is to think, litellm would grant 4,096 tokens beside its thoughts.
        most = route.most_output if effort and route.features.reasoning == "blocks" else None
        arguments: dict[str, Any] = {
            "model": spec.name,
            "api_base": spec.api_base,
            "api_key": route.api_key,
            "temperature": spec.temperature,
            "max_tokens": spec.max_output_tokens or most,
            "tools": [dict(tool) for tool in request.tools] or None,
            "stop": (list(request.stop) or None) if route.features.stop else None,
            "reasoning_effort": effort,
            "extra_headers": headers_of(request) or None,
            # Ours, over the whole answer, comes first: litellm's is from one piece to the next.
            "timeout": spec.timeout + 60.0,
            "num_retries": 0,
            "max_retries": 0,
            # Else a request with tools imports litellm's proxy, and fails without the mcp package.
            "_skip_mcp_handler": True,
        }
        if route.direct and travels_as_it_is(messages):
            # The openai client walks all messages of a request, but not its extra body.
            arguments |= {"messages": PLACEHOLDER, "extra_body": {"messages": messages}}
        else:
            # litellm writes into the messages it is given.
            arguments["messages"] = [copy.deepcopy(dict(message)) for message in messages]
        return {name: value for name, value in arguments.items() if value is not None}

    def _completion(
        self, litellm: Any, request: Request, answer: Assembly, latency: float
    ) -> Completion:
        return Completion(
            id=answer.id or str(uuid4()),
            model=request.model.name,
            message=answer.message(call_ids(request.messages)),
            finish_reason=answer.finish_reason,
            usage=usage_of(answer.usage, self._cost(litellm, request.model, answer.usage), latency),
            received=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f"),
        )

    def _key_variable(self, spec: ModelSpec) -> str:
        return self.routes.get(spec, Route()).key_variable

    def _cost(self, litellm: Any, spec: ModelSpec, usage: Json) -> float:
        """US dollars by litellm's price list; 0 where it has no price for the model."""
        if not usage or not self.routes[spec].priced:
            return 0.0
        parts = litellm.cost_per_token(model=spec.name, usage_object=litellm.Usage(**usage))
        return float(sum(parts))


def _effort(request: Request, features: Features) -> str | None:
    """How hard to think, where that can be said and the prompt allows it."""
    if not features.effort or (features.reasoning == "blocks" and lacks_thinking(request.messages)):
        return None
    return request.model.reasoning_effort


def _import() -> Any:
    """Bring litellm in, quiet and offline.

    The one hidden import of the house: litellm takes seconds and about 130 MB, and a worker that
    was never asked to think stays small and starts at once.
    """
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    package = importlib.util.find_spec("litellm")
    if package is not None and package.origin is not None:
        tokenizers = Path(package.origin).parent / "litellm_core_utils" / "tokenizers"
        os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(tokenizers))
    # It says so once, to whoever watches, while it builds its own types at the first answer.
    warnings.filterwarnings("ignore", message="Item .* is using the `ReadOnly` qualifier")
    litellm: Any = importlib.import_module("litellm")
    litellm.telemetry = False
    litellm.suppress_debug_info = True
    # An answer may say the same word a hundred times.
    litellm.REPEATED_STREAMING_CHUNK_LIMIT = sys.maxsize
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return litellm


def _response_behind(stream: Any) -> Any:
    """The HTTP response that litellm only hands on, if it does: that of an OpenAI stream.

    It is read as it came, for litellm's own wrapper costs 0.7 ms a chunk, and takes a stream that
    broke off for a finished answer.
    """
    behind: Any = getattr(stream, "completion_stream", None)
    plain: Any = importlib.import_module("openai").AsyncStream
    return behind.response if isinstance(behind, plain) else None


async def _received(response: Any) -> AsyncGenerator[Any]:
    """The chunks of a response; one that was not streamed is a single chunk."""
    if "json" in response.headers.get("content-type", ""):
        yield json.loads(await response.aread())
        return
    async for chunk in events(response.aiter_bytes()):
        yield chunk


async def _wrapped(stream: Any) -> AsyncGenerator[Any]:
    """The chunks that litellm made of another provider's protocol."""
    async for chunk in stream:
        yield chunk.model_dump(exclude_none=True)


def _complete(answer: Assembly, spec: ModelSpec) -> Assembly:
    """The answer, if it is one."""
    if not answer.answered:
        what = f"{spec.name} answered with no choices: try again later."
        raise ModelUnavailable("malformed", what)
    if answer.finish_reason is None:
        what = f"The answer of {spec.name} broke off: try again later."
        raise ModelUnavailable("connection", what)
    if answer.finish_reason == "content_filter" and answer.empty:
        what = f"The provider of {spec.name} filtered the whole answer: rephrase the last message."
        raise ModelRefused("content", what)
    return answer
