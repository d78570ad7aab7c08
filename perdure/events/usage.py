"""The usage of a model's response."""

from typing import Any, Literal

from pydantic import SerializerFunctionWrapHandler, model_serializer

from perdure.events.base import Tolerant


class Usage(Tolerant):
    """Tokens, US dollars, seconds; empty fields are not written.

    `cached_tokens` were read from the provider's cache and `cache_write_tokens` written to it; both
    are part of `prompt_tokens`, as `reasoning_tokens` are of `completion_tokens`. The cost of
    `unpriced_tokens` is unknown, as their model has no price: `cost` does not include it.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost: float = 0.0
    unpriced_tokens: int = 0
    latency: float = 0.0
    model: str = ""
    served_model: str = ""
    """The model's name in its response, where it is another one, such as a dated version."""
    purpose: Literal["", "condense", "title", "ask", "delegate", "grade"] = ""
    """The purpose of the request; empty means the conversation itself."""

    @property
    def known_cost(self) -> float | None:
        """The cost in US dollars; None if it is not wholly known."""
        return None if self.unpriced_tokens else self.cost

    def __add__(self, other: "Usage") -> "Usage":
        """Add up all amounts; the sum has the model and the purpose of the first."""
        sums = {name: getattr(self, name) + getattr(other, name) for name in AMOUNTS}
        return self.model_copy(update=sums)

    def __sub__(self, other: "Usage") -> "Usage":
        """Subtract all amounts of an earlier part; the rest has the model and the purpose."""
        rests = {name: max(0, getattr(self, name) - getattr(other, name)) for name in AMOUNTS}
        return self.model_copy(update=rests)

    @model_serializer(mode="wrap")
    def _omit_empty(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in write(self).items() if value}


def describe_cost(usage: Usage) -> str:
    """Describe the cost for people; one that is not known is not $0."""
    if not usage.unpriced_tokens:
        return f"${usage.cost:.4f}"
    unknown = f"{usage.unpriced_tokens:,} tokens of a model without a known price"
    return f"${usage.cost:.4f} and {unknown}" if usage.cost else f"cost unknown ({unknown})"


NAMES = ("model", "served_model", "purpose")
AMOUNTS = tuple(name for name in Usage.model_fields if name not in NAMES)
