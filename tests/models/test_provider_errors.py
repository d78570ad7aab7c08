"""Tests of the classification of providers' errors."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.models.model import ContextOverflow, ModelRefused, ModelUnavailable
from perdure.models.provider_errors import (
    ProviderError,
    mask_secrets,
    one_line,
    retry_after,
    to_model_error,
)
from tests.models.requests import calm

OVERFLOW = "context_overflow"
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "7"}, 7),
        ({"retry-after": "1.5"}, 1.5),
        ({"Retry-After": format_datetime(NOW + timedelta(seconds=90), usegmt=True)}, 90),
        ({"Retry-After": format_datetime(NOW - timedelta(seconds=90), usegmt=True)}, 0),
        ({"Retry-After": "-3"}, 0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "nan"}, None),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"x-ratelimit-reset": "12"}, 12),
        ({"X-RateLimit-Reset": str(NOW.timestamp() + 30)}, 30),
        ({"X-RateLimit-Reset": str((NOW.timestamp() + 30) * 1000)}, 30),
        ({"Retry-After": "soon", "x-ratelimit-reset": "12"}, 12),
    ],
)
def test_the_retry_delay_is_read_from_a_providers_headers(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert retry_after(headers, NOW) == pytest.approx(seconds)


@calm
@given(
    st.text(max_size=40), st.sampled_from(["retry-after", "retry-after-ms", "x-ratelimit-reset"])
)
def test_any_header_gives_a_valid_retry_delay(value: str, name: str) -> None:
    wait = retry_after({name: value}, NOW)
    assert wait is None or wait >= 0


@pytest.mark.parametrize(
    ("fault", "kind", "code"),
    [
        ({"status": 429, "text": "Rate limit reached"}, ModelUnavailable, "rate_limit"),
        ({"status": 429, "code": "insufficient_quota", "text": "x"}, ModelRefused, "quota"),
        ({"status": 400, "text": "Your credit balance is too low"}, ModelRefused, "quota"),
        ({"status": 402, "text": "Payment required"}, ModelRefused, "quota"),
        (
            {"status": 429, "text": "Request too large for gpt-4o"},
            ContextOverflow,
            OVERFLOW,
        ),
        ({"status": 429, "text": "Too many tokens per minute"}, ModelUnavailable, "rate_limit"),
        ({"status": 401, "text": "no"}, ModelRefused, "auth"),
        ({"status": 403, "text": "no"}, ModelRefused, "auth"),
        ({"status": 400, "text": "API key not valid. Please pass one."}, ModelRefused, "auth"),
        ({"status": 500, "text": "Missing credentials."}, ModelRefused, "auth"),
        ({"status": 404, "text": "no"}, ModelRefused, "model_not_found"),
        ({"status": 400, "code": "model_not_found", "text": ""}, ModelRefused, "model_not_found"),
        (
            {"status": 400, "code": "context_length_exceeded", "text": ""},
            ContextOverflow,
            OVERFLOW,
        ),
        (
            {"status": 400, "text": "prompt is too long: 210000 tokens"},
            ContextOverflow,
            OVERFLOW,
        ),
        (
            {"status": 413, "text": "exceeds the context window"},
            ContextOverflow,
            OVERFLOW,
        ),
        (
            {"status": 400, "text": "the request exceeds the available context size"},
            ContextOverflow,
            OVERFLOW,
        ),
        ({"status": 400, "text": "temperature is too large"}, ModelRefused, "bad_request"),
        ({"status": 422, "text": "no"}, ModelRefused, "bad_request"),
        ({"status": 400, "code": "content_policy_violation", "text": ""}, ModelRefused, "content"),
        ({"status": 400, "text": "blocked by content filtering policy"}, ModelRefused, "content"),
        (
            {"status": 400, "code": "script_exhausted", "text": "The script ended."},
            ModelRefused,
            "script_exhausted",
        ),
        *(({"status": n, "text": "no"}, ModelUnavailable, "timeout") for n in (408, 504)),
        *(
            ({"status": n, "text": "no"}, ModelUnavailable, "overloaded")
            for n in (409, 425, 500, 503, 529)
        ),
    ],
)
def test_every_provider_error_is_classified(fault: dict[str, Any], kind: type, code: str) -> None:
    error = to_model_error(ProviderError(model="openai/m", key_variable="OPENAI_API_KEY", **fault))
    assert type(error) is kind
    assert error.code == code
    assert str(error).endswith(".")
    assert "\n" not in str(error)
    if code == "auth":
        assert "OPENAI_API_KEY" in str(error)


@pytest.mark.parametrize(
    "text",
    [
        "Incorrect API key provided: sk-proj-abcdefgh12345678.",
        "header Authorization: Bearer abc.def-ghi",
        "https://api.example/v1?key=abc.def-ghi&x=1",
        "AIzaSyabcdefghijklmnop was refused",
    ],
)
def test_text_that_looks_like_a_key_is_masked(text: str) -> None:
    assert "***" in mask_secrets(text)
    assert not any(part in mask_secrets(text) for part in ("abcdefgh", "def-ghi"))


def test_error_details_are_one_short_line() -> None:
    assert one_line("  too\n much.  ") == "too much"
    shortened = one_line("words " * 200)
    assert 290 < len(shortened) <= 300
    assert shortened.endswith(" words ..."), "no word is cut"
    assert len(one_line("w" * 400)) <= 301
