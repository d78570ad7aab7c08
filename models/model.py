"""What a conversation asks of a model, and the ways in which it can be refused."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from agent.completion import Completion
from agent.spec import ModelSpec

OnText: TypeAlias = Callable[[str], None]
"""Told the whole text of the answer so far, each time it grows."""

RefusalCode: TypeAlias = Literal[
    "auth",
    "quota",
    "model_not_found",
    "bad_request",
    "content",
    "script_exhausted",
    "recording_exhausted",
    "internal",
]
UnavailableCode: TypeAlias = Literal[
    "rate_limit", "overloaded", "timeout", "connection", "malformed"
]
ErrorCode: TypeAlias = RefusalCode | UnavailableCode | Literal["context_overflow"]

Purpose: TypeAlias = Literal["", "condense", "title", "ask", "delegate", "grade"]
"""What an answer is for; nothing means the conversation itself."""

PURPOSE_HEADER = "X-Perdure-Purpose"
NUMBER_HEADER = "X-Perdure-Number"
"""How a server of one's own is told a request's `purpose` and `number`."""

KEY_HEADER = "Idempotency-Key"
"""How a server or gateway is told a request's `key` (draft-ietf-httpapi-idempotency-key-header)."""


@dataclass(frozen=True)
class Request:
    """`messages` and `tools` are in the OpenAI chat-completions format.

    `fallbacks` are asked in this order when the model cannot answer; `stop` are the words it stops
    before. `number` counts the answers of this purpose that the conversation has had, so that a
    script goes on at the right one whatever was condensed away. `key` names the call, the same in
    every attempt: a server that honours it answers a repeat without charging for it again.
    """

    model: ModelSpec
    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]] = ()
    fallbacks: Sequence[ModelSpec] = ()
    stop: Sequence[str] = ()
    purpose: Purpose = ""
    number: int | None = None
    key: str | None = None


Complete: TypeAlias = Callable[[Request, OnText], Awaitable[Completion]]
"""How a model is asked: `Model.complete`, or what stands for it."""


class Model(Protocol):
    """Who answers.

    Raises ModelError and nothing else; cancelling the call ends the request.
    """

    async def complete(self, request: Request, on_text: OnText) -> Completion: ...


class ModelError(Exception):
    """The model gave no answer; `str(error)` is a sentence that says what to do.

    * ModelUnavailable: time may mend it
    * ModelRefused: somebody has to act
    * ContextOverflow: the prompt has to shrink
    """

    code: ErrorCode


class ModelUnavailable(ModelError):
    """Overloaded, rate limited, unreachable or broken for the moment.

    `retry_after` is what the provider asks for, in seconds; none means: back off as usual.
    """

    def __init__(
        self, code: UnavailableCode, detail: str, retry_after: float | None = None
    ) -> None:
        super().__init__(detail)
        self.code: UnavailableCode = code
        self.retry_after = retry_after


class ModelRefused(ModelError):
    """No retry will help."""

    def __init__(self, code: RefusalCode, detail: str) -> None:
        super().__init__(detail)
        self.code: RefusalCode = code


class ContextOverflow(ModelError):
    """The prompt is longer than the model's context window."""

    code: ErrorCode = "context_overflow"
