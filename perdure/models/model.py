"""The interface of a language model: request, answer and errors."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from perdure.agent.calls.completion import Completion
from perdure.agent.spec import ModelSpec
from perdure.errors import PerdureError

OnText: TypeAlias = Callable[[str], None]
"""A callback that receives the whole text of the answer so far each time it grows."""

RefusalCode: TypeAlias = Literal[
    "auth",
    "quota",
    "model_not_found",
    "bad_request",
    "content",
    "script_exhausted",
    "recording_exhausted",
    "image_lost",
    "internal",
]
UnavailableCode: TypeAlias = Literal[
    "rate_limit", "overloaded", "timeout", "connection", "malformed"
]
ErrorCode: TypeAlias = RefusalCode | UnavailableCode | Literal["context_overflow"]

Purpose: TypeAlias = Literal["", "condense", "title", "ask", "delegate", "grade"]
"""The use of an answer; empty for the next step of the conversation itself."""

PURPOSE_HEADER = "X-Perdure-Purpose"
NUMBER_HEADER = "X-Perdure-Number"
"""The headers that carry a request's `purpose` and `number` to a self-hosted server."""

KEY_HEADER = "Idempotency-Key"
"""The header that carries a request's `key` (draft-ietf-httpapi-idempotency-key-header)."""


@dataclass(frozen=True)
class Request:
    """A request to a model; `messages` and `tools` are in the OpenAI chat-completions format.

    A message must not be changed after it was passed: its JSON may be kept for the next request.
    """

    model: ModelSpec
    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]] = ()
    fallbacks: Sequence[ModelSpec] = ()
    """Models to call in this order when `model` cannot answer."""
    stop: Sequence[str] = ()
    """Stop sequences."""
    purpose: Purpose = ""
    number: int | None = None
    """The number of answers for this purpose that the conversation already has: it tells a script
    its position even after messages were condensed away."""
    key: str | None = None
    """The idempotency key, the same in every attempt at this call."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    """The application's own words for the call, where the server takes any."""


Complete: TypeAlias = Callable[[Request, OnText], Awaitable[Completion]]
"""The signature of `Model.complete`."""


class Model(Protocol):
    """A language model.

    `complete` raises ModelError and nothing else; cancelling it ends the request.
    """

    async def complete(self, request: Request, on_text: OnText) -> Completion: ...


class ModelError(PerdureError):
    """A failure to get an answer; `str(error)` is a sentence that says what to do.

    * ModelUnavailable: a retry may help
    * ModelRefused: a person has to act
    * ContextOverflow: the prompt has to shrink
    """

    code: ErrorCode
    model: str | None = None
    """The name of the model that failed, where several may answer."""


class ModelUnavailable(ModelError):
    """The model is overloaded, rate limited, unreachable or failing for the moment.

    `retry_after` is the provider's own delay in seconds; None means the usual backoff.
    """

    def __init__(
        self, code: UnavailableCode, detail: str, retry_after: float | None = None
    ) -> None:
        super().__init__(detail)
        self.code: UnavailableCode = code
        self.retry_after = retry_after


class ModelRefused(ModelError):
    """The request failed in a way that no retry will change."""

    def __init__(self, code: RefusalCode, detail: str) -> None:
        super().__init__(detail)
        self.code: RefusalCode = code


class ContextOverflow(ModelError):
    """The prompt is longer than the model's context window."""

    code: ErrorCode = "context_overflow"
