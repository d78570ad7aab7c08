"""Conversion of litellm's exceptions to model errors.

litellm keeps different parts of a provider's response on different classes of exception (the body
on one, the headers on another, the network's message on the cause of a cause), so each part is
searched for in the whole chain of causes.
"""

import json
import re
from collections.abc import Iterator, Mapping
from socket import gaierror
from typing import Any

from perdure.agent.spec import ModelSpec
from perdure.models.model import ModelError, ModelRefused, ModelUnavailable
from perdure.models.provider_errors import (
    ProviderError,
    error_code,
    one_line,
    to_model_error,
)

CODE_OF_CLASS = {
    "ContextWindowExceededError": "context_length_exceeded",
    "ContentPolicyViolationError": "content_policy_violation",
}
"""The code of an error by litellm's exception class, where litellm knows more providers' texts."""

NETWORK_ERRORS = {
    "TransportError",
    "ClientConnectionError",
    "ClientPayloadError",
    "HTTPClientError",
}
"""The base classes of what httpx, aiohttp and botocore raise without a complete response."""

LABEL_PREFIX = re.compile(r"^((litellm\.)?\w+Error: |\w+Exception -? ?)+")
"""The labels that litellm puts before a provider's message."""


def convert_exception(
    error: Exception, spec: ModelSpec, key_variable: str, before: BaseException | None
) -> ModelError:
    """Convert an exception of litellm to a model error.

    `before` is the exception being handled when litellm was called; it is no cause of this one.
    """
    # For an error in the middle of a stream, the inner exception has more of the response.
    inner = getattr(error, "original_exception", None) or error
    chain = [*_exception_chain(inner, before), *_exception_chain(error, before)]
    message = _plain_message(chain)
    body = _find_body(chain) or _parse_body(message)
    status = getattr(inner, "status_code", None)
    provider_error = ProviderError(
        model=spec.name,
        text=str(body.get("message") or message),
        status=status if isinstance(status, int) else None,
        code=CODE_OF_CLASS.get(type(inner).__name__) or error_code(body),
        headers=_headers(chain),
        key_variable=key_variable,
    )
    model_error = to_model_error(provider_error)
    if isinstance(model_error, ModelUnavailable):
        return _error_without_response(spec, chain, provider_error) or model_error
    return model_error


def _error_without_response(
    spec: ModelSpec, chain: list[BaseException], error: ProviderError
) -> ModelError | None:
    """Return the error if no usable response came (network, JSON, litellm itself), else None."""
    text = _network_message(chain)
    if text is not None:
        where = f" at {spec.api_base}" if spec.api_base else ""
        detail = f"The connection to {spec.name}{where} failed ({one_line(text)}): check both ends."
        return ModelUnavailable("connection", detail)
    text = one_line(error.text)
    garbled = any(isinstance(exception, json.JSONDecodeError) for exception in chain)
    if garbled and error.status in (None, 500):
        detail = f"{spec.name} answered with malformed JSON ({text}): try again later."
        return ModelUnavailable("malformed", detail)
    # litellm reports its own bugs as connection errors, without a response.
    unanswered = type(chain[0]).__name__ == "APIConnectionError" and not error.headers
    if error.status is None or unanswered:
        first = chain[0]
        while (cause := first.__cause__ or first.__context__) in chain and cause is not None:
            first = cause
        reason = f"{type(first).__name__}: {text}"
        detail = f"litellm failed on {spec.name} ({reason}): report it as a bug."
        return ModelRefused("internal", detail)
    return None


def cannot_stream(error: Exception) -> bool:
    """Tell whether a request was refused only because it asked for a stream."""
    return getattr(error, "status_code", None) in (400, 422) and "stream" in str(error).lower()


def _exception_chain(error: BaseException, before: BaseException | None) -> Iterator[BaseException]:
    """Yield the exception and its causes, the first cause last."""
    current: BaseException | None = error
    while current is not None and current is not before:
        yield current
        current = current.__cause__ or current.__context__


def _find_body(chain: list[BaseException]) -> Mapping[str, Any]:
    bodies = (getattr(exception, "body", None) for exception in reversed(chain))
    body = next((body for body in bodies if isinstance(body, Mapping)), {})
    inner = body.get("error")
    return inner if isinstance(inner, Mapping) else body


def _parse_body(text: str) -> Mapping[str, Any]:
    """Parse the error object in a text that quotes the whole response."""
    try:
        body = json.loads(text[text.find("{") : text.rfind("}") + 1])
    except ValueError:
        return {}
    inner = body.get("error") if isinstance(body, Mapping) else None
    return inner if isinstance(inner, Mapping) else {}


def _plain_message(chain: list[BaseException]) -> str:
    """Return the exception's message without litellm's labels and traceback."""
    text = str(chain[0]).partition("\nTraceback")[0]
    return LABEL_PREFIX.sub("", text) or type(chain[0]).__name__


def _headers(chain: list[BaseException]) -> dict[str, str]:
    for exception in chain:
        response = getattr(exception, "response", None)
        headers = getattr(exception, "litellm_response_headers", None)
        if headers := headers or getattr(response, "headers", None):
            return {str(name): str(value) for name, value in headers.items()}
    return {}


def _network_message(chain: list[BaseException]) -> str | None:
    for exception in reversed(chain):
        ancestors = {kind.__name__ for kind in type(exception).__mro__}
        failed = isinstance(exception, ConnectionError | TimeoutError | gaierror)
        if failed or ancestors & NETWORK_ERRORS:
            return str(exception) or type(exception).__name__
    return None
