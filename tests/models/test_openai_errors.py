"""Errors of OpenAI-compatible servers over real HTTP, directly and through litellm."""

import asyncio
import json
import uuid

import httpx
import pytest

from perdure.models.model import (
    ContextOverflow,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    Request,
)
from perdure.testing.server import serve_scripts
from tests.models.conftest import Way
from tests.models.requests import (
    Fixed,
    ask,
    environment,
    stream,
    text_in,
    user,
)
from tests.models.scripts import FAILURES, STORY

# Of litellm's stream wrapper, as it builds its types and copies its chunks.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Item .* is using the `ReadOnly` qualifier"),
    pytest.mark.filterwarnings("ignore:Accessing the 'model_(computed_)?fields' attribute"),
]


@pytest.mark.parametrize(
    ("name", "kind", "code", "says"),
    [
        ("limited", ModelUnavailable, "rate_limit", "is rate limited"),
        ("quota", ModelRefused, "quota", "no quota left .*: add credit"),
        ("key", ModelRefused, "auth", r"refused the key \(.*\*\*\*\): set OPENAI_API_KEY"),
        ("forbidden", ModelRefused, "auth", "set OPENAI_API_KEY"),
        ("missing", ModelRefused, "model_not_found", "was not found"),
        ("overflow", ContextOverflow, "context_overflow", "too long .*: condense"),
        ("long", ContextOverflow, "context_overflow", "maximum context length is 9"),
        ("policy", ModelRefused, "content", "rephrase"),
        ("bad", ModelRefused, "bad_request", "temperature must be at most 2"),
        ("unprocessable", ModelRefused, "bad_request", "refused the request"),
        ("timeout", ModelUnavailable, "timeout", "status 408"),
        ("conflict", ModelUnavailable, "overloaded", "status 409"),
        ("broken", ModelUnavailable, "overloaded", "status 500"),
        ("gateway", ModelUnavailable, "overloaded", "status 502"),
        ("overloaded", ModelUnavailable, "overloaded", "status 503"),
        ("late", ModelUnavailable, "timeout", "status 504"),
        ("busy", ModelUnavailable, "overloaded", "status 529"),
        ("lost", ModelUnavailable, "connection", "connection .* failed"),
        ("malformed", ModelUnavailable, "malformed", "malformed JSON|no choices"),
    ],
)
async def test_an_error_is_raised_and_the_next_attempt_succeeds(
    way: Way,
    url: str,
    name: str,
    kind: type[ModelError],
    code: str,
    says: str,
) -> None:
    spec = way.spec(url, name)
    says = says.replace("OPENAI", way.provider.upper())
    question = user(f"attempt {uuid.uuid4()}")
    with pytest.raises(kind, match=says) as raised:
        await ask(way.model, spec, question)
    assert raised.value.code == code
    assert getattr(raised.value, "retry_after", None) == FAILURES[name].retry_after
    assert str(raised.value).endswith(".")
    assert "\n" not in str(raised.value)
    assert "abcdefgh" not in str(raised.value)
    assert raised.value.__cause__ is None
    assert text_in(await ask(way.model, spec, question)) == "At last."


async def test_an_unknown_model_is_refused(openai_way: Way, url: str) -> None:
    with pytest.raises(ModelRefused, match="model nobody does not exist; there are: ") as raised:
        await ask(openai_way.model, openai_way.spec(url, "nobody"))
    assert raised.value.code == "model_not_found"


async def test_a_wrong_key_is_refused_and_not_printed(openai_way: Way) -> None:
    async with serve_scripts({"story": STORY}, api_key="right") as url:
        with (
            environment(OPENAI_API_KEY="the-wrong-one-of-all"),
            pytest.raises(ModelRefused, match="set OPENAI_API_KEY in the worker's") as raised,
        ):
            await ask(openai_way.model, openai_way.spec(url, "story"))
    assert raised.value.code == "auth"
    assert "the-wrong-one" not in str(raised.value)


async def test_an_unreachable_address_is_worth_a_retry(way: Way) -> None:
    async with serve_scripts({"story": STORY}) as url:
        pass
    with pytest.raises(ModelUnavailable, match=f"{url}.*failed .*Connect call failed"):
        await ask(way.model, way.spec(url, "story"))


async def test_an_invalid_address_is_refused(openai_way: Way) -> None:
    for address in ("", "localhost:8000"):
        with pytest.raises(ModelRefused, match="write it like http://") as raised:
            await ask(openai_way.model, openai_way.spec(address, "story"))
        assert raised.value.code == "bad_request"


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


@pytest.mark.parametrize("status", [401, 502])
async def test_an_error_need_not_be_json(way: Way, status: int) -> None:
    kind, says = {401: (ModelRefused, "refused the key"), 502: (ModelUnavailable, "502")}[status]
    server = Fixed(b"<html>No.</html>", "text/html", status)
    async with server.spec(f"{way.provider}/odd") as spec:
        with pytest.raises(kind, match=says):
            await ask(way.model, spec)


async def test_an_exception_handled_before_is_not_taken_for_the_cause(
    openai_way: Way, url: str
) -> None:
    try:
        raise ConnectionResetError("another matter")
    except ConnectionResetError:
        with pytest.raises(ModelUnavailable, match="is rate limited") as raised:
            await ask(openai_way.model, openai_way.spec(url, "limited"), user(str(uuid.uuid4())))
    assert "another matter" not in str(raised.value)


async def test_a_hanging_server_runs_into_the_timeout_of_the_spec(
    openai_way: Way, url: str
) -> None:
    with pytest.raises(ModelUnavailable, match=r"gave no answer in 0.2 s: raise its timeout"):
        await ask(
            openai_way.model, openai_way.spec(url, "hanging", timeout=0.2), user(str(uuid.uuid4()))
        )


async def test_a_slow_stream_runs_into_the_timeout(openai_way: Way, url: str) -> None:
    texts: list[str] = []
    with pytest.raises(ModelUnavailable, match="gave no answer in"):
        await ask(openai_way.model, openai_way.spec(url, "slow", timeout=0.5), texts=texts)
    assert texts


@pytest.mark.parametrize("name", ["hanging", "slow"])
async def test_cancelling_a_call_closes_the_connection(way: Way, url: str, name: str) -> None:
    begun = asyncio.Event()
    request = Request(way.spec(url, name), [user(str(uuid.uuid4()))])
    before = await count(url, name)
    asking = asyncio.create_task(way.model.complete(request, lambda _: begun.set()))
    async with asyncio.timeout(30):
        while (await count(url, name))["requested"] == before["requested"]:
            await asyncio.sleep(0.01)
        if name == "slow":
            await begun.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        while (await count(url, name))["disconnected"] == before["disconnected"]:
            await asyncio.sleep(0.01)
    assert (await count(url, name))["answered"] == before["answered"]


async def count(url: str, name: str) -> dict[str, int]:
    async with httpx.AsyncClient() as client:
        calls = (await client.get(url.replace("/v1", "/calls"))).json()["calls"]
    nothing = {"requested": 0, "answered": 0, "disconnected": 0}
    return next((call for call in calls if call["script"] == name), nothing)
