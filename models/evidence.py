"""What the exceptions of litellm mean.

litellm keeps different halves of a provider's response on different classes of exception (the body
on one, the headers on another, the network's own words on the cause of a cause), so each part is
taken from wherever in the chain it is.
"""

import json
import re
from collections.abc import Iterator, Mapping
from socket import gaierror
from typing import Any

from agent.spec import ModelSpec
from models.fault import Fault, brief, model_error
from models.model import ModelError, ModelRefused, ModelUnavailable

STATUS_OF_TYPE = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "insufficient_quota": 429,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
}
"""For an error inside a stream, whose own status was 200."""

CODE_OF_CLASS = {
    "ContextWindowExceededError": "context_length_exceeded",
    "ContentPolicyViolationError": "content_policy_violation",
}
"""litellm knows more providers' words for these than we do."""

NETWORK = frozenset(
    {
        "TransportError",  # httpx
        "ClientConnectionError",  # aiohttp
        "ClientPayloadError",
        "HTTPClientError",  # botocore
    }
)
"""The ancestors of what clients raise where there is no whole response."""

LABELS = re.compile(r"^((litellm\.)?\w+Error: |\w+Exception -? ?)+")
"""What litellm puts before a provider's words."""


def error_of(
    error: Exception, spec: ModelSpec, key_variable: str, before: BaseException | None
) -> ModelError:
    """The model error that an exception of litellm amounts to.

    `before` is what was being handled when litellm was called, and no cause of this.
    """
    # Of an error in the middle of a stream, the one inside says more.
    inner = getattr(error, "original_exception", None) or error
    chain = [*_chain(inner, before), *_chain(error, before)]
    said = _said(chain)
    body = _body(chain) or _body_in(said)
    text = str(body.get("message") or said)
    fault = Fault(
        model=spec.name,
        text=text,
        status=_status(inner),
        code=CODE_OF_CLASS.get(type(inner).__name__) or _code(body),
        headers=_headers(chain),
        key_variable=key_variable,
    )
    known = model_error(fault)
    if isinstance(known, ModelUnavailable):
        return _without_response(spec, chain, fault) or known
    return known


def _without_response(
    spec: ModelSpec, chain: list[BaseException], fault: Fault
) -> ModelError | None:
    """What it was where no response came that could be understood, or none."""
    network = _network(chain)
    if network is not None:
        where = f" at {spec.api_base}" if spec.api_base else ""
        what = f"The connection to {spec.name}{where} failed ({brief(network)}): check both ends."
        return ModelUnavailable("connection", what)
    garbled = any(isinstance(each, json.JSONDecodeError) for each in chain)
    if garbled and fault.status in (None, 500):
        what = f"{spec.name} answered with malformed JSON ({brief(fault.text)}): try again later."
        return ModelUnavailable("malformed", what)
    # litellm calls a mistake of its own a connection error; no response came with that.
    if fault.status is None or (
        type(chain[0]).__name__ == "APIConnectionError" and not fault.headers
    ):
        what = f"litellm failed on {spec.name} ({_named(chain, fault)}): report it as a bug."
        return ModelRefused("internal", what)
    return None


def _named(chain: list[BaseException], fault: Fault) -> str:
    """The first cause by its type, and what was said of it."""
    first = chain[0]
    while (cause := first.__cause__ or first.__context__) in chain and cause is not None:
        first = cause
    return f"{type(first).__name__}: {brief(fault.text)}"


def error_in_answer(error: Any, spec: ModelSpec, key_variable: str) -> ModelError:
    """The model error for an error object in the middle of a stream, or in a body of status 200."""
    body = error if isinstance(error, Mapping) else {"message": str(error)}
    code = _code(body)
    status = int(code) if code.isdecimal() else STATUS_OF_TYPE.get(str(body.get("type")), 500)
    text = str(body.get("message") or code or "no reason given")
    return model_error(Fault(spec.name, text, status, code, key_variable=key_variable))


def cannot_stream(error: Exception) -> bool:
    """Whether a request was refused for the one reason that it asked for a stream."""
    return getattr(error, "status_code", None) in (400, 422) and "stream" in str(error).lower()


def _chain(error: BaseException, before: BaseException | None) -> Iterator[BaseException]:
    """The exception and its causes, the first cause last."""
    at: BaseException | None = error
    while at is not None and at is not before:
        yield at
        at = at.__cause__ or at.__context__


def _body(chain: list[BaseException]) -> Mapping[str, Any]:
    """The error object of the response, if any exception still has it."""
    for each in reversed(chain):
        body = getattr(each, "body", None)
        if isinstance(body, Mapping):
            inner = body.get("error")
            return inner if isinstance(inner, Mapping) else body
    return {}


def _code(body: Mapping[str, Any]) -> str:
    return str(body.get("code") or body.get("type") or "")


def _body_in(said: str) -> Mapping[str, Any]:
    """The error object in a text that quotes the whole response."""
    try:
        body = json.loads(said[said.find("{") : said.rfind("}") + 1])
    except ValueError:
        return {}
    inner = body.get("error") if isinstance(body, Mapping) else None
    return inner if isinstance(inner, Mapping) else {}


def _said(chain: list[BaseException]) -> str:
    """What litellm made of what the provider said, without its labels and its traceback."""
    said = str(chain[0]).partition("\nTraceback")[0]
    return LABELS.sub("", said) or type(chain[0]).__name__


def _status(error: BaseException) -> int | None:
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


def _headers(chain: list[BaseException]) -> dict[str, str]:
    for each in chain:
        response = getattr(each, "response", None)
        for holder in (
            getattr(each, "litellm_response_headers", None),
            getattr(response, "headers", None),
        ):
            if holder:
                return {str(name): str(value) for name, value in holder.items()}
    return {}


def _network(chain: list[BaseException]) -> str | None:
    """What the network said, where it was the network."""
    for each in reversed(chain):
        ancestors = {kind.__name__ for kind in type(each).__mro__}
        if isinstance(each, ConnectionError | TimeoutError | gaierror) or ancestors & NETWORK:
            return str(each) or type(each).__name__
    return None
