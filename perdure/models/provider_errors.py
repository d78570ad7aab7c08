"""Errors of providers, and their classification as model errors."""

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from perdure.models.model import (
    ContextOverflow,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    UnavailableCode,
)

RETRYABLE_STATUSES = frozenset({408, 409, 425, 429})
"""The client errors worth a retry, besides every server error."""

OVERFLOW_TEXT = re.compile(
    r"context[ _]length|context window|context limit|context size|prompt is too long"
    r"|maximum (context|input|number of tokens)|too many (input )?tokens|reduce the length"
    r"|exceeds the (maximum|limit).*tokens|input tokens exceed|request[ _]too[ _]large"
    r"|current length is .* while limit is|max_new_tokens. must be",
    re.IGNORECASE,
)
CONTENT_FILTER_TEXT = re.compile(
    r"content[ _](policy|filter|management)|safety system|responsibleaipolicy|usage policy",
    re.IGNORECASE,
)
QUOTA_TEXT = re.compile(r"insufficient_quota|credit balance is too low", re.IGNORECASE)
MISSING_KEY_TEXT = re.compile(
    r"missing (\w+ )?(credentials|api key)|unable to locate credentials|api_key .*must be set",
    re.IGNORECASE,
)
INVALID_KEY_TEXT = re.compile(
    r"incorrect api key|invalid api key|api key not valid|invalid x-api-key", re.IGNORECASE
)
STATUS_OF_TYPE = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "insufficient_quota": 429,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The status of an error inside a stream, whose own status was 200, by the error's type."""

SECRET_TEXT = re.compile(
    r"\b(sk|pk|rk|gsk|xai|hf|AIza|AKIA|ghp)[-_]?[A-Za-z0-9*_-]{8,}"
    r"|(?<=Bearer )\S+|(?<=key=)[^\s&'\"]+"
)
SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)$")

MAX_TEXT_CHARS = 300
"""Characters of a provider's text that an error quotes."""

SENTENCES = {
    "content": "The provider of {model} refused the content ({text}): rephrase the last message.",
    "context_overflow": "The prompt is too long for {model} ({text}): condense the conversation.",
    "quota": "The account for {model} has no quota left ({text}): add credit, then resume.",
    "no_key": "{model} needs a key, and the worker has none: set {variable} in its environment, "
    "and start the worker (`perdure dev` or `perdure worker`) again.",
    "bad_key": "{model} refused the key ({text}): set {variable} in the worker's environment to a "
    "key that may use this model, and start the worker (`perdure dev` or `perdure worker`) again.",
    "unknown_provider": "No provider is known for {model}: write PROVIDER/MODEL, such as "
    "openai/gpt-4o.",
    "model_not_found": "The model {model} was not found ({text}): correct its name or its "
    "api_base.",
    "bad_request": "{model} refused the request ({text}): correct the model's settings or its "
    "prompt.",
    "rate_limit": "{model} is rate limited ({text}): wait, or ask its provider for more.",
    "overloaded": "{model} failed with status {status} ({text}): try again later.",
}


@dataclass(frozen=True)
class ProviderError:
    """An error response of a provider, or of the network on the way to it."""

    model: str
    """The model's name as requested, for the error message."""
    text: str
    status: int | None = None
    code: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    key_variable: str = ""
    """The environment variable with the provider's key, for the error message."""


def to_model_error(error: ProviderError) -> ModelError:
    """Classify a provider's error, with a sentence that says what to do."""
    if error.code == "script_exhausted":
        return ModelRefused("script_exhausted", error.text)
    text, status = f"{error.code} {error.text}", error.status or 500
    if CONTENT_FILTER_TEXT.search(text) and status < 500:
        return ModelRefused("content", _explain(error, "content"))
    if OVERFLOW_TEXT.search(text) and (status in (400, 413, 422) or "too large" in text.lower()):
        return ContextOverflow(_explain(error, "context_overflow"))
    if QUOTA_TEXT.search(text) or status == 402:
        return ModelRefused("quota", _explain(error, "quota"))
    if MISSING_KEY_TEXT.search(text) or INVALID_KEY_TEXT.search(text) or status in (401, 403):
        missing = MISSING_KEY_TEXT.search(error.text)
        return ModelRefused("auth", _explain(error, "no_key" if missing else "bad_key"))
    if "llm provider not provided" in text.lower():
        return ModelRefused("model_not_found", _explain(error, "unknown_provider"))
    if "model_not_found" in text or status == 404:
        return ModelRefused("model_not_found", _explain(error, "model_not_found"))
    if status < 500 and status not in RETRYABLE_STATUSES:
        return ModelRefused("bad_request", _explain(error, "bad_request"))
    wait = retry_after(error.headers, datetime.now(UTC))
    if status == 429:
        return ModelUnavailable("rate_limit", _explain(error, "rate_limit"), wait)
    code: UnavailableCode = "timeout" if status in (408, 504) else "overloaded"
    return ModelUnavailable(code, _explain(error, "overloaded"), wait)


def convert_error_object(error: Any, model: str, key_variable: str) -> ModelError:
    """Convert an error object in the middle of a stream, or in a body of status 200."""
    body = error if isinstance(error, Mapping) else {"message": str(error)}
    code = error_code(body)
    status = int(code) if code.isdecimal() else STATUS_OF_TYPE.get(str(body.get("type")), 500)
    text = str(body.get("message") or code or "no reason given")
    return to_model_error(ProviderError(model, text, status, code, key_variable=key_variable))


def error_code(body: Mapping[str, Any]) -> str:
    return str(body.get("code") or body.get("type") or "")


def missing_key_error(model: str, variable: str) -> ModelRefused:
    """Build the error of a model whose provider would find no key."""
    error = ProviderError(model, "", key_variable=variable)
    return ModelRefused("auth", _explain(error, "no_key"))


def _explain(error: ProviderError, reason: str) -> str:
    return SENTENCES[reason].format(
        model=error.model,
        text=one_line(error.text),
        status=error.status,
        variable=error.key_variable or "the provider's API key",
    )


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Read the provider's retry delay in seconds from its headers; None without one.

    `retry-after-ms` is the most exact, `Retry-After` is seconds or an HTTP date (RFC 9110, 10.2.3),
    and `x-ratelimit-reset` is seconds from now, or an epoch in seconds or milliseconds.
    """
    lower = {name.lower(): value for name, value in headers.items()}
    waits = (
        _parse_number(lower.get("retry-after-ms"), 1 / 1000),
        _parse_number(lower.get("retry-after")),
        _seconds_until(lower.get("retry-after"), now),
        _seconds_to_reset(_parse_number(lower.get("x-ratelimit-reset")), now),
    )
    return next((max(0.0, wait) for wait in waits if wait is not None), None)


def one_line(text: str) -> str:
    """Shorten a text to one line of 300 characters, without secrets and the final full stop.

    It ends with a whole word, unless one word is as long.
    """
    line = " ".join(mask_secrets(text).split())
    if len(line) <= MAX_TEXT_CHARS:
        return line.rstrip(".:")
    cut = line[: MAX_TEXT_CHARS - 3]
    whole, space, _ = cut.rpartition(" ")
    return f"{(whole if space else cut).rstrip('.:,;')} ..."


def mask_secrets(text: str) -> str:
    """Mask the secrets of the environment, and text that looks like an API key."""
    for name, value in os.environ.items():
        if SECRET_NAME.search(name) and len(value) >= 8:
            text = text.replace(value, "***")
    return SECRET_TEXT.sub("***", text)


def _parse_number(text: str | None, unit: float = 1.0) -> float | None:
    try:
        number = float(text or "") * unit
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _seconds_until(date: str | None, now: datetime) -> float | None:
    try:
        moment = parsedate_to_datetime(date or "")
    except ValueError:
        return None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - now).total_seconds()


def _seconds_to_reset(reset: float | None, now: datetime) -> float | None:
    """Convert a reset time to seconds from now; from 1e9 (30 years) on it is an epoch."""
    if reset is None or reset < 1e9:
        return reset
    return (reset / 1000 if reset > 1e12 else reset) - now.timestamp()
