"""What went wrong at a provider, and which of the model errors that is."""

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from models.model import (
    ContextOverflow,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    UnavailableCode,
)

RETRIED = frozenset({408, 409, 425, 429})
"""The client errors that time may mend; every server error is another."""

OVERFLOW = re.compile(
    r"context[ _]length|context window|context limit|context size|prompt is too long"
    r"|maximum (context|input|number of tokens)|too many (input )?tokens|reduce the length"
    r"|exceeds the (maximum|limit).*tokens|input tokens exceed|request too large",
    re.IGNORECASE,
)
CONTENT = re.compile(
    r"content[ _](policy|filter|management)|safety system|responsibleaipolicy|usage policy",
    re.IGNORECASE,
)
QUOTA = re.compile(r"insufficient_quota|credit balance is too low", re.IGNORECASE)
MISSING = re.compile(
    r"missing (\w+ )?(credentials|api key)|unable to locate credentials|api_key .*must be set",
    re.IGNORECASE,
)
NO_KEY = re.compile(
    r"incorrect api key|invalid api key|api key not valid|invalid x-api-key", re.IGNORECASE
)
NO_PROVIDER = re.compile("llm provider not provided", re.IGNORECASE)
SECRET = re.compile(
    r"\b(sk|pk|rk|gsk|xai|hf|AIza|AKIA|ghp)[-_]?[A-Za-z0-9*_-]{8,}"
    r"|(?<=Bearer )\S+|(?<=key=)[^\s&'\"]+"
)
SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)$")


@dataclass(frozen=True)
class Fault:
    """What a provider, or the way to it, said; as far as it said anything.

    `model` and `key_variable` are for the sentence: the model as it was asked for, and the
    environment variable its key is read from.
    """

    model: str
    text: str
    status: int | None = None
    code: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    key_variable: str = ""


def model_error(fault: Fault) -> ModelError:
    """The error that a fault with a status amounts to, with a sentence that says what to do."""
    if fault.code == "script_exhausted":
        return ModelRefused("script_exhausted", fault.text)
    return _refused(fault) or _unavailable(fault)


def _refused(fault: Fault) -> ModelError | None:
    """What no retry will help, or none."""
    said, status, model = f"{fault.code} {fault.text}", fault.status or 500, fault.model
    because = f"({brief(fault.text)})"
    if CONTENT.search(said) and status < 500:
        what = f"The provider of {model} refused the content {because}: rephrase the last message."
        return ModelRefused("content", what)
    if OVERFLOW.search(said) and (status in (400, 413, 422) or "too large" in said.lower()):
        what = f"The prompt is too long for {model} {because}: condense the conversation."
        return ContextOverflow(what)
    if QUOTA.search(said) or status == 402:
        what = f"The account for {model} has no quota left {because}: add credit, then resume."
        return ModelRefused("quota", what)
    if MISSING.search(said) or NO_KEY.search(said) or status in (401, 403):
        return ModelRefused("auth", _about_the_key(fault))
    if NO_PROVIDER.search(said):
        what = f"No provider is known for {model}: write PROVIDER/MODEL, such as openai/gpt-4o."
        return ModelRefused("model_not_found", what)
    if "model_not_found" in said or status == 404:
        what = f"The model {model} was not found {because}: correct its name or its api_base."
        return ModelRefused("model_not_found", what)
    if status < 500 and status not in RETRIED:
        what = f"{model} refused the request {because}: correct the model's settings or its prompt."
        return ModelRefused("bad_request", what)
    return None


def _about_the_key(fault: Fault) -> str:
    variable = fault.key_variable or "the provider's API key"
    trouble = "found no key" if MISSING.search(fault.text) else "refused the key"
    return (
        f"{fault.model} {trouble} ({brief(fault.text)}): set {variable} in the worker's "
        "environment to a key that may use this model."
    )


def _unavailable(fault: Fault) -> ModelUnavailable:
    wait = retry_after(fault.headers, datetime.now(UTC))
    said = brief(fault.text)
    if fault.status == 429:
        what = f"{fault.model} is rate limited ({said}): wait, or ask its provider for more."
        return ModelUnavailable("rate_limit", what, wait)
    what = f"{fault.model} failed with status {fault.status} ({said}): try again later."
    code: UnavailableCode = "timeout" if fault.status in (408, 504) else "overloaded"
    return ModelUnavailable(code, what, wait)


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """The seconds a provider asks to wait, or none.

    `retry-after-ms` is the most exact, `Retry-After` is seconds or an HTTP date (RFC 9110, 10.2.3),
    and `x-ratelimit-reset` is seconds from now, or an epoch in seconds or milliseconds.
    """
    lower = {name.lower(): value for name, value in headers.items()}
    wait = _number(lower.get("retry-after-ms"))
    if wait is not None:
        return max(0.0, wait / 1000)
    wait = _number(lower.get("retry-after"))
    if wait is None:
        wait = _until(lower.get("retry-after"), now)
    if wait is None:
        wait = _to_reset(_number(lower.get("x-ratelimit-reset")), now)
    return None if wait is None else max(0.0, wait)


def brief(text: str) -> str:
    """One line of at most 300 characters, without secrets and without its last full stop."""
    line = " ".join(masked(text).split())
    return (line if len(line) <= 300 else f"{line[:297]}...").rstrip(".:")


def masked(text: str) -> str:
    """The text without anything that is, or looks like, a key."""
    for name, value in os.environ.items():
        if SECRET_NAME.search(name) and len(value) >= 8:
            text = text.replace(value, "***")
    return SECRET.sub("***", text)


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _until(date: str | None, now: datetime) -> float | None:
    try:
        moment = parsedate_to_datetime(date or "")
    except ValueError:
        return None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - now).total_seconds()


def _to_reset(reset: float | None, now: datetime) -> float | None:
    """A reset this large can only be a moment: no provider makes anybody wait 30 years."""
    if reset is None or reset < 1e9:
        return reset
    return (reset / 1000 if reset > 1e12 else reset) - now.timestamp()
