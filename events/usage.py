"""What an answer of a model took."""

from typing import Any

from pydantic import SerializerFunctionWrapHandler, model_serializer

from events.base import Tolerant


class Usage(Tolerant):
    """Tokens, US dollars, seconds; what is nothing is not written."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cost: float = 0.0
    latency: float = 0.0

    @model_serializer(mode="wrap")
    def _written(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in write(self).items() if value}
