"""What a conversation asks of a model, and the ways in which it can be refused."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from agent.completion import Completion
from agent.spec import ModelSpec

OnText: TypeAlias = Callable[[str], None]
"""Told the whole text of the answer so far, each time it grows."""

RefusalCode: TypeAlias = Literal[
    "auth", "quota", "model_not_found", "bad_request", "content", "script_exhausted", "internal"
]


@dataclass(frozen=True)
class Request:
    """`messages` and `tools` are in the OpenAI chat-completions format."""

    model: ModelSpec
    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]] = ()


class Model(Protocol):
    """Who answers.

    Raises ModelError and nothing else; cancelling the call ends the request.
    """

    async def complete(self, request: Request, on_text: OnText) -> Completion: ...


class ModelError(Exception):
    """The model gave no answer.

    * ModelUnavailable: time may mend it
    * ModelRefused: somebody has to act
    * ContextOverflow: the prompt has to shrink
    """


class ModelUnavailable(ModelError):
    """Overloaded, rate limited, unreachable or broken for the moment.

    `retry_after` is what the provider asks for, in seconds; none means: back off as usual.
    """

    def __init__(self, detail: str, retry_after: float | None = None) -> None:
        super().__init__(detail)
        self.retry_after = retry_after


class ModelRefused(ModelError):
    """No retry will help; `str(error)` is a sentence that says what to do."""

    def __init__(self, code: RefusalCode, detail: str) -> None:
        super().__init__(detail)
        self.code = code


class ContextOverflow(ModelError):
    """The prompt is longer than the model's context window."""
