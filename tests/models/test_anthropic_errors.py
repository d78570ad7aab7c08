"""Errors of Anthropic's Messages API over real HTTP, directly and through litellm."""

import json

import pytest

from perdure.agent.spec import ModelSpec
from perdure.models.anthropic.client import Anthropic
from perdure.models.model import ContextOverflow, ModelError, ModelRefused, ModelUnavailable
from tests.models.anthropic_events import answer, events, said, text_block
from tests.models.conftest import Way
from tests.models.requests import Fixed, ask, environment

# Of litellm's stream wrapper, as it builds its types and copies its chunks.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Item .* is using the `ReadOnly` qualifier"),
    pytest.mark.filterwarnings("ignore:Accessing the 'model_(computed_)?fields' attribute"),
]

NAME = "anthropic/claude-sonnet-4-5"


def error(kind: str, message: str) -> bytes:
    fields = {"type": kind, "message": message}
    return json.dumps({"type": "error", "error": fields, "request_id": "req_1"}).encode()


@pytest.mark.parametrize(
    ("status", "kind", "message", "class_", "code"),
    [
        (400, "invalid_request_error", "prompt is too long: 9 > 8", ContextOverflow, None),
        (400, "invalid_request_error", "max_tokens: too large", ModelRefused, "bad_request"),
        (400, "invalid_request_error", "Your credit balance is too low", ModelRefused, "quota"),
        (401, "authentication_error", "invalid x-api-key", ModelRefused, "auth"),
        (402, "billing_error", "no payment", ModelRefused, "quota"),
        (403, "permission_error", "not yours", ModelRefused, "auth"),
        (404, "not_found_error", "model: claude-nowhere", ModelRefused, "model_not_found"),
        (413, "request_too_large", "Request exceeds the maximum size", ContextOverflow, None),
        (429, "rate_limit_error", "slow down", ModelUnavailable, "rate_limit"),
        (500, "api_error", "Internal server error", ModelUnavailable, "overloaded"),
        (503, "api_error", "not now", ModelUnavailable, "overloaded"),
        (529, "overloaded_error", "Overloaded", ModelUnavailable, "overloaded"),
    ],
)
async def test_an_error_has_the_same_class_by_both_ways(
    anthropic_way: Way,
    status: int,
    kind: str,
    message: str,
    class_: type[ModelError],
    code: str | None,
) -> None:
    server = Fixed(error(kind, message), status=status, headers={"retry-after": "3"})
    async with server.spec(NAME) as spec:
        with pytest.raises(class_, match=message) as raised:
            await ask(anthropic_way.model, spec)
    assert code is None or raised.value.code == code
    assert "req_1" not in str(raised.value)
    assert getattr(raised.value, "retry_after", 3) == 3


@pytest.mark.parametrize("status", [404, 413, 502])
async def test_an_error_need_not_be_anthropics(anthropic_way: Way, status: int) -> None:
    server = Fixed(b"<html>No.</html>", "text/html", status)
    async with server.spec(NAME) as spec:
        with pytest.raises(ModelError, match=r"No|502"):
            await ask(anthropic_way.model, spec)


START = ("message_start", {"message": {"id": "m1", "usage": {"input_tokens": 3}}})


@pytest.mark.parametrize("begun", [True, False])
@pytest.mark.parametrize(
    ("kind", "message"), [("overloaded_error", "Overloaded"), ("api_error", "Internal error")]
)
async def test_an_error_in_a_stream_is_worth_a_retry(
    anthropic_way: Way, kind: str, message: str, begun: bool
) -> None:
    beginning = [START, *text_block(0, "half")] if begun else []
    body = events(*beginning, ("error", {"error": {"type": kind, "message": message}}))
    async with Fixed(body, "text/event-stream").spec(NAME) as spec:
        with pytest.raises(ModelUnavailable, match=message) as raised:
            await ask(anthropic_way.model, spec)
    assert raised.value.code == "overloaded"


@pytest.mark.parametrize(
    ("kind", "class_"),
    [
        ("rate_limit_error", ModelUnavailable),
        ("invalid_request_error", ModelRefused),
        ("authentication_error", ModelRefused),
        ("permission_error", ModelRefused),
        ("request_too_large", ContextOverflow),
        ("timeout_error", ModelUnavailable),
        ("of_tomorrow", ModelUnavailable),
    ],
)
async def test_an_error_in_a_stream_is_classified_by_its_type(
    anthropic: Anthropic, kind: str, class_: type[ModelError]
) -> None:
    body = events(START, ("error", {"error": {"type": kind, "message": "no"}}))
    async with Fixed(body, "text/event-stream").spec(NAME) as spec:
        with pytest.raises(class_):
            await ask(anthropic, spec)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "no choices"),
        (events(START), "broke off"),
        (events(START, *text_block(0, "half")), "broke off"),
        (b'data: {"type": "message_st\n\n', "malformed JSON"),
        (b"data: 3\n\n", "no JSON object"),
        (events(("ping", {})), "no choices"),
    ],
)
async def test_an_interrupted_stream_is_worth_a_retry(
    anthropic: Anthropic, body: bytes, says: str
) -> None:
    async with Fixed(body, "text/event-stream").spec(NAME) as spec:
        with pytest.raises(ModelUnavailable, match=says):
            await ask(anthropic, spec)


@pytest.mark.parametrize("body", [b"", b'data: {"type": "message_st\n\n'])
async def test_a_stream_without_events_is_no_answer_by_either_way(
    anthropic_way: Way, body: bytes
) -> None:
    async with Fixed(body, "text/event-stream").spec(NAME) as spec:
        with pytest.raises(ModelUnavailable):
            await ask(anthropic_way.model, spec)


@pytest.mark.parametrize(("body", "says"), [(b"<html>", "malformed"), (b"{}", "no choices")])
async def test_a_malformed_body_is_worth_a_retry(
    anthropic: Anthropic, body: bytes, says: str
) -> None:
    async with Fixed(body).spec(NAME) as spec:
        with pytest.raises(ModelUnavailable, match=says):
            await ask(anthropic, spec)


async def test_an_error_in_a_body_of_status_200_is_classified(anthropic: Anthropic) -> None:
    body = error("invalid_request_error", "prompt is too long: 9 > 8")
    async with Fixed(body).spec(NAME) as spec:
        with pytest.raises(ContextOverflow):
            await ask(anthropic, spec)


async def test_a_missing_key_is_named(anthropic_way: Way) -> None:
    names = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL")
    with (
        environment(**dict.fromkeys((*names, "ANTHROPIC_API_BASE"))),
        pytest.raises(ModelRefused, match=r"needs a key, .*: set ANTHROPIC_API_KEY in") as raised,
    ):
        await ask(anthropic_way.model, ModelSpec(name="claude-sonnet-4-5", timeout=77))
    assert raised.value.code == "auth"


async def test_an_error_quotes_no_key(anthropic_way: Way) -> None:
    key = "the-key-of-this-test"
    with environment(ANTHROPIC_API_KEY=key):
        async with Fixed(error("api_error", f"bad {key}"), status=500).spec(NAME) as spec:
            with pytest.raises(ModelUnavailable) as raised:
                await ask(anthropic_way.model, spec)
    assert key not in str(raised.value)


async def test_a_whole_answer_ends_at_its_last_event(anthropic: Anthropic) -> None:
    body = said("so") + events(("error", {"error": {"type": "api_error", "message": "late"}}))
    async with Fixed(body, "text/event-stream").spec(NAME) as spec:
        assert (await ask(anthropic, spec)).finish_reason == "stop"
    async with Fixed(answer(), "text/event-stream").spec(NAME) as spec:
        assert (await ask(anthropic, spec)).message.content == ()
