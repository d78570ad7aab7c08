"""Embedding models: those of litellm, and functions of the user's own."""

import asyncio
import inspect
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from perdure.agent.spec import ModelSpec
from perdure.errors import ClientError, Invalid, Unreachable
from perdure.memory.embedding import Embedder
from perdure.models.keys import find_missing_key
from perdure.models.litellm.client import LiteLLM
from perdure.models.litellm.errors import convert_exception
from perdure.models.model import ModelError, ModelUnavailable
from perdure.models.provider_errors import missing_key_error
from perdure.references import BadReference, import_reference

EMBEDDING_TIMEOUT = 30.0
"""Seconds for one request: who searches waits for it."""

FUNCTION_PREFIX = "python:"

HINT = "It is `embedding_model` of the table [memory] of perdure.toml."


def load_embedder(name: str | None, api_base: str | None = None) -> Embedder | None:
    """Return the embedding model of a name; None without one. Raises Invalid."""
    if name is None:
        return None
    if not name.startswith(FUNCTION_PREFIX):
        return LiteLLMEmbedder(name, api_base)
    try:
        return FunctionEmbedder(name, import_reference(name.removeprefix(FUNCTION_PREFIX)))
    except BadReference as error:
        raise Invalid(f"The embedding model {name!r}: {error}.", HINT) from error


class LiteLLMEmbedder:
    """An embedding model of a provider, called through litellm; keys are those of its models."""

    def __init__(self, name: str, api_base: str | None = None) -> None:
        self.name = name
        self._spec = ModelSpec(name=name, api_base=api_base, timeout=EMBEDDING_TIMEOUT)
        self._litellm = LiteLLM()

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return a vector for each text. Raises Unreachable, Invalid."""
        before = sys.exception()
        try:
            if variable := find_missing_key(self._spec, os.environ):
                raise missing_key_error(self.name, variable)
            answer = await self._request(await self._litellm.load(), texts)
        except ModelError as error:
            raise self._explain(error) from None
        except TimeoutError:
            message = f"The embedding model {self.name} gave no answer in {EMBEDDING_TIMEOUT:g} s."
            raise Unreachable(message, HINT) from None
        except Exception as error:  # litellm's adapters raise whatever their providers provoke
            # Without the cause, whose text may hold a key.
            raise self._explain(convert_exception(error, self._spec, "", before)) from None
        vectors = [list(map(float, item["embedding"])) for item in answer.data]
        return check_vectors(self.name, texts, vectors)

    async def _request(self, litellm: Any, texts: Sequence[str]) -> Any:
        async with asyncio.timeout(EMBEDDING_TIMEOUT):
            return await litellm.aembedding(
                model=self.name,
                input=list(texts),
                api_base=self._spec.api_base,
                timeout=EMBEDDING_TIMEOUT,
                encoding_format="float",
            )

    def _explain(self, error: ModelError) -> ClientError:
        kind = Unreachable if isinstance(error, ModelUnavailable) else Invalid
        return kind(f"The embedding model failed: {error}", HINT)


class FunctionEmbedder:
    """A function of the user's own: it takes a list of texts and returns a vector for each."""

    def __init__(self, name: str, function: Callable[[list[str]], Any]) -> None:
        self.name = name
        self._function = function

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return a vector for each text; a plain function runs in a thread. Raises Invalid."""
        try:
            if inspect.iscoroutinefunction(self._function):
                answer = await self._function(list(texts))
            else:
                answer = await asyncio.to_thread(self._function, list(texts))
            vectors = [[float(number) for number in vector] for vector in answer]
        except Exception as error:
            reason = str(error) or type(error).__name__
            raise Invalid(f"The embedding model {self.name!r} failed: {reason}.", HINT) from error
        return check_vectors(self.name, texts, vectors)


def check_vectors(name: str, texts: Sequence[str], vectors: list[list[float]]) -> list[list[float]]:
    """Return the vectors. Raises Invalid unless each text has one, and all are equally long."""
    if len(vectors) != len(texts) or len(set(map(len, vectors))) > 1 or not all(vectors):
        raise Invalid(f"The embedding model {name!r} returned no vector for each text.", HINT)
    return vectors
