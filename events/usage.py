"""What an answer of a model took."""

from typing import Any, Literal

from pydantic import SerializerFunctionWrapHandler, model_serializer

from events.base import Tolerant


class Usage(Tolerant):
    """Tokens, US dollars, seconds; what is nothing is not written.

    `cached_tokens` were read from the provider's cache and `cache_write_tokens` written to it; both
    are part of `prompt_tokens`, as `reasoning_tokens` are of `completion_tokens`.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost: float = 0.0
    latency: float = 0.0
    model: str = ""
    purpose: Literal["", "condense", "title", "ask", "delegate", "grade"] = ""
    """What the model was asked for; nothing means the conversation itself."""

    @model_serializer(mode="wrap")
    def _written(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in write(self).items() if value}
