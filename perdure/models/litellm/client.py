"""The model that calls any provider through litellm."""

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
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

from perdure.agent.calls.completion import Completion
from perdure.agent.spec import ModelSpec
from perdure.models.answer import add_chunk, build_completion, check_complete
from perdure.models.keys import find_missing_key
from perdure.models.litellm.errors import cannot_stream, convert_exception
from perdure.models.litellm.route import Route, find_listed, find_route
from perdure.models.message_adapter import adapt_messages, lacks_thinking
from perdure.models.model import ModelError, ModelUnavailable, OnText, Request
from perdure.models.own_server import perdure_headers
from perdure.models.prompt_tools import complete_with_prompt_tools
from perdure.models.provider_errors import missing_key_error
from perdure.models.stream_accumulator import Json, StreamAccumulator, parse_events

logger = logging.getLogger("perdure.worker")

LITELLM_ENVIRONMENT = {
    # Use the price list of the package: otherwise litellm downloads a newer one, and waits for it.
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    # In its "DEV" mode litellm reads whatever .env file it finds above the working directory.
    "LITELLM_MODE": "PRODUCTION",
}


class LiteLLM:
    """The model with the spec's `name` at litellm.

    Retries are left to the caller: litellm's own are off. Keys are read from the environment
    variables that litellm documents for each provider.
    """

    def __init__(self) -> None:
        self._loading = asyncio.Lock()
        self._library: Any = None
        self.routes: dict[ModelSpec, Route] = {}
        self._unstreamed: set[ModelSpec] = set()

    async def complete(self, request: Request, on_text: OnText) -> Completion:
        spec, before = request.model, sys.exception()
        if variable := find_missing_key(spec, os.environ):  # without the seconds of an import
            raise missing_key_error(spec.name, variable)
        try:
            route = await self._route(spec)
            if route.capabilities.native_tools:
                return await self._complete(request, on_text)
            return await complete_with_prompt_tools(self._complete, request, on_text)
        except ModelError:
            raise
        except TimeoutError:
            detail = f"{spec.name} gave no answer in {spec.timeout:g} s: raise its timeout."
            raise ModelUnavailable("timeout", detail) from None
        except Exception as error:  # litellm's adapters raise whatever their providers provoke
            # Without the cause: its text may hold a key, and the new error has all that matters.
            raise convert_exception(error, spec, self._key_variable(spec), before) from None

    async def _complete(self, request: Request, on_text: OnText) -> Completion:
        litellm, started = await self.load(), time.monotonic()
        async with asyncio.timeout(request.model.timeout):
            answer = await self._answer(litellm, request, on_text)
        list_cost = self._list_cost(litellm, request.model, answer.usage)
        return build_completion(request, answer, time.monotonic() - started, list_cost)

    async def _route(self, spec: ModelSpec) -> Route:
        """Return the cached route of the model: for some, litellm has to query their server."""
        if spec not in self.routes:
            self.routes[spec] = await asyncio.to_thread(find_route, await self.load(), spec)
        return self.routes[spec]

    async def load(self) -> Any:
        """Load litellm, if it is not loaded: it takes some seconds, in a thread."""
        async with self._loading:
            if self._library is None:
                logger.info("loading the model libraries (litellm), which takes some seconds")
                self._library = await asyncio.to_thread(_import_litellm)
            return self._library

    async def _answer(self, litellm: Any, request: Request, on_text: OnText) -> StreamAccumulator:
        if request.model not in self._unstreamed:
            try:
                return await self._stream(litellm, request, on_text)
            except Exception as error:
                if not cannot_stream(error):
                    raise
        response = await litellm.acompletion(**self._arguments(request))
        answer = StreamAccumulator()
        chunk = response.model_dump(exclude_none=True)
        add_chunk(answer, chunk, request.model, self._key_variable(request.model))
        check_complete(answer, request.model)
        self._unstreamed.add(request.model)
        if answer.text:
            on_text(answer.text)
        return answer

    async def _stream(self, litellm: Any, request: Request, on_text: OnText) -> StreamAccumulator:
        options = {"stream": True, "stream_options": {"include_usage": True}}
        stream = await litellm.acompletion(**self._arguments(request), **options)
        answer = StreamAccumulator()
        response = _raw_response(stream)
        try:
            chunks = _litellm_chunks(stream) if response is None else _raw_chunks(response)
            async with aclosing(chunks):
                async for chunk in chunks:
                    length = len(answer.text)
                    add_chunk(answer, chunk, request.model, self._key_variable(request.model))
                    if len(answer.text) > length:
                        on_text(answer.text)
        finally:
            await stream.aclose()
        if response is None and answer.is_empty and stream.received_finish_reason is None:
            # litellm's wrapper takes a body that is no stream for an empty answer.
            answer.has_choice = False
        check_complete(answer, request.model)
        return answer

    def _arguments(self, request: Request) -> dict[str, Any]:
        spec, route = request.model, self.routes[request.model]
        capabilities = route.capabilities
        messages = adapt_messages(request.messages, capabilities)
        blocks = capabilities.reasoning == "blocks"
        may_think = capabilities.effort and not (blocks and lacks_thinking(request.messages))
        effort = spec.reasoning_effort if may_think else None
        # For Claude with thinking, litellm's default is 4,096 tokens beside the thinking.
        default_max_tokens = route.max_output_tokens if effort and blocks else None
        arguments: dict[str, Any] = {
            "model": spec.name,
            # litellm modifies the messages it is given.
            "messages": [copy.deepcopy(dict(message)) for message in messages],
            "api_base": spec.api_base,
            "api_key": route.api_key,
            "temperature": spec.temperature,
            "max_tokens": spec.max_output_tokens or default_max_tokens,
            "tools": [dict(tool) for tool in request.tools] or None,
            "stop": (list(request.stop) or None) if capabilities.stop else None,
            "reasoning_effort": effort,
            "extra_headers": perdure_headers(request) or None,
            **_metadata_arguments(request),
            # The timeout of the whole answer fires first: litellm's is between two chunks.
            "timeout": spec.timeout + 60.0,
            "num_retries": 0,
            "max_retries": 0,
            # Otherwise a request with tools imports litellm's proxy, which needs the mcp package.
            "_skip_mcp_handler": True,
        }
        return {name: value for name, value in arguments.items() if value is not None}

    def _list_cost(
        self, litellm: Any, spec: ModelSpec, fields: Json
    ) -> Callable[[Any], float] | None:
        """Return the cost by litellm's list, if it has the model; litellm reads its own usage."""
        if not self.routes[spec].priced:
            return None
        return lambda _: float(
            sum(litellm.cost_per_token(model=spec.name, usage_object=litellm.Usage(**fields)))
        )

    def _key_variable(self, spec: ModelSpec) -> str:
        return self.routes.get(spec, Route()).key_variable


def _metadata_arguments(request: Request) -> dict[str, Any]:
    """Return the arguments that carry the metadata: litellm gives its own to callbacks alone."""
    metadata, spec = dict(request.metadata), request.model
    if not metadata:
        return {}
    if spec.api_base is not None and spec.name.startswith("openai/"):
        return {"metadata": metadata, "extra_body": {"metadata": metadata}}
    return {"metadata": metadata}


def has_listed_price(name: str) -> bool:
    """Tell whether litellm has a price of PROVIDER/MODEL, after an import that takes seconds."""
    provider, _, model = name.partition("/")
    return bool(find_listed(_import_litellm(), model, provider, None))


def _import_litellm() -> Any:
    """Import litellm (seconds, about 130 MB) without its log messages and network calls."""
    for name, value in LITELLM_ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    package = importlib.util.find_spec("litellm")
    if package is not None and package.origin is not None:
        tokenizers = Path(package.origin).parent / "litellm_core_utils" / "tokenizers"
        os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(tokenizers))
    # pydantic warns once about litellm's own types, at the first answer.
    warnings.filterwarnings("ignore", message="Item .* is using the `ReadOnly` qualifier")
    litellm: Any = importlib.import_module("litellm")
    litellm.telemetry = False
    litellm.suppress_debug_info = True
    # An answer may repeat the same word a hundred times.
    litellm.REPEATED_STREAMING_CHUNK_LIMIT = sys.maxsize
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return litellm


def _raw_response(stream: Any) -> Any:
    """Return the HTTP response behind a stream of the openai client; None for other providers.

    It is read directly because litellm's own wrapper costs 0.7 ms a chunk, and takes an
    interrupted stream for a finished answer.
    """
    inner: Any = getattr(stream, "completion_stream", None)
    openai_stream: Any = importlib.import_module("openai").AsyncStream
    return inner.response if isinstance(inner, openai_stream) else None


async def _raw_chunks(response: Any) -> AsyncGenerator[Any]:
    """Yield the chunks of a response; a response that was not streamed is a single chunk."""
    if "json" in response.headers.get("content-type", ""):
        yield json.loads(await response.aread())
        return
    async for chunk in parse_events(response.aiter_bytes()):
        yield chunk


async def _litellm_chunks(stream: Any) -> AsyncGenerator[Any]:
    async for chunk in stream:
        yield chunk.model_dump(exclude_none=True)
