"""Errors of OpenAI-compatible servers over real HTTP, directly and through litellm."""

import json

import pytest

from perdure.models.model import (
    ContextOverflow,
    ModelRefused,
    ModelUnavailable,
)
from tests.models.conftest import Way
from tests.models.requests import (
    Fixed,
    ask,
    stream,
)

# Of litellm's stream wrapper, as it builds its types and copies its chunks.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Item .* is using the `ReadOnly` qualifier"),
    pytest.mark.filterwarnings("ignore:Accessing the 'model_(computed_)?fields' attribute"),
]


@pytest.mark.parametrize(
    ("header", "wait"), [({"retry-after-ms": "1250"}, 1.25), ({"x-ratelimit-reset": "9"}, 9.0)]
)
async def test_the_retry_delay_is_read_from_the_response(
    openai_way: Way, header: dict[str, str], wait: float
) -> None:
    body = json.dumps({"error": {"message": "Slow down.", "type": "rate_limit"}}).encode()
    async with Fixed(body, status=429, headers=header).spec() as spec:
        with pytest.raises(ModelUnavailable, match="Slow down") as raised:
            await ask(openai_way.model, spec)
    assert raised.value.retry_after == wait


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "no choices"),
        (stream({"content": "half"}, end=False), "broke off"),
        (b'data: {"choices": [\n\n', "malformed JSON"),
        (b"data: 3\n\n", "no JSON object"),
        (b'data: {"error": {"message": "Overloaded", "code": 529}}\n\n', "status 529 .Overloaded"),
        (b'data: {"error": "odd"}\n\n', "status 500 .odd"),
    ],
)
async def test_an_interrupted_stream_is_worth_a_retry(
    openai_way: Way, body: bytes, says: str
) -> None:
    async with Fixed(body, "text/event-stream").spec() as spec:
        with pytest.raises(ModelUnavailable, match=says):
            await ask(openai_way.model, spec)


@pytest.mark.parametrize(
    ("body", "says"), [(b"<html>", "malformed"), (b'{"choices": []}', "no choices"), (b"", "malf")]
)
async def test_a_malformed_body_is_worth_a_retry(openai_way: Way, body: bytes, says: str) -> None:
    async with Fixed(body).spec() as spec:
        with pytest.raises(ModelUnavailable, match=says):
            await ask(openai_way.model, spec)


async def test_an_error_in_a_stream_is_classified(openai_way: Way) -> None:
    error = {"message": "context length exceeded", "type": "invalid_request_error"}
    body = b"data: " + json.dumps({"error": error}).encode() + b"\n\n"
    async with Fixed(body, "text/event-stream").spec() as spec:
        with pytest.raises(ContextOverflow):
            await ask(openai_way.model, spec)


async def test_a_filtered_answer_is_refused(openai_way: Way) -> None:
    body = stream({}).replace(b'"stop"', b'"content_filter"')
    async with Fixed(body, "text/event-stream").spec() as spec:
        with pytest.raises(ModelRefused, match="filtered the whole answer") as raised:
            await ask(openai_way.model, spec)
    assert raised.value.code == "content"
