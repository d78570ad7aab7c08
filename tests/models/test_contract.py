"""What every way to a model does, over real HTTP: APIs called directly and through litellm."""

import asyncio
import itertools
import uuid
from datetime import UTC, datetime

import httpx
import pytest

from perdure.events.usage import describe_cost
from perdure.models.model import (
    ContextOverflow,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    Request,
)
from perdure.testing.server import serve_scripts
from tests.models.conftest import Way
from tests.models.requests import Fixed, ask, environment, text_in, to_message, user
from tests.models.scripts import FAILURES, STORY

# Of litellm's stream wrapper, as it builds its types and copies its chunks.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Item .* is using the `ReadOnly` qualifier"),
    pytest.mark.filterwarnings("ignore:Accessing the 'model_(computed_)?fields' attribute"),
]


async def test_an_answer_comes_whole_through_its_stream(way: Way, url: str) -> None:
    texts: list[str] = []
    answer = await ask(way.model, way.spec(url, "story"), texts=texts)
    script_answer = STORY.answers[0]
    assert text_in(answer) == script_answer.content
    assert answer.message.reasoning_content == "Where am I?"
    assert [(call.id, call.name, call.arguments) for call in answer.message.tool_calls or ()] == [
        ("call_story_1_1", "look", '{"at": "é"}'),
        ("call_story_1_2", "say", '{"half": '),
    ]
    assert answer.finish_reason == "tool_calls"
    assert answer.model == f"{way.provider}/story"
    assert answer.id.startswith(("chatcmpl-", "msg_"))
    assert script_answer.usage is not None
    tokens = script_answer.usage.prompt_tokens + script_answer.usage.completion_tokens
    unpriced = script_answer.usage.model_copy(update={"unpriced_tokens": tokens})
    assert answer.usage.model_copy(update={"latency": 0.0}) == unpriced
    assert answer.usage.latency > 0
    assert datetime.fromisoformat(answer.received).replace(tzinfo=UTC) <= datetime.now(UTC)
    assert texts[-1] == script_answer.content
    assert len(texts) > 2
    assert all(later.startswith(text) for text, later in itertools.pairwise(texts))


async def test_a_conversation_ends_with_its_script(way: Way, url: str) -> None:
    spec = way.spec(url, "story")
    first = await ask(way.model, spec, user("go"))
    results = [
        {"role": "tool", "tool_call_id": call.id, "content": "."}
        for call in first.message.tool_calls or ()
    ]
    second = await ask(way.model, spec, user("go"), to_message(first), *results)
    assert text_in(second) == "Done."
    with pytest.raises(ModelRefused, match=r"^The script story has 2 .* calls finish\.$") as raised:
        await ask(way.model, spec, user("go"), to_message(first), *results, to_message(second))
    assert raised.value.code == "script_exhausted"


async def test_an_answer_may_repeat_itself(way: Way, url: str) -> None:
    answer = await ask(way.model, way.spec(url, "repeating"))
    assert text_in(answer) == "word " * 300


async def test_the_prices_of_a_spec_count_before_the_list(way: Way, url: str) -> None:
    spec = way.spec(url, "story", input_price=3.0, output_price=15.0)
    usage = (await ask(way.model, spec)).usage
    cost = (usage.prompt_tokens * 3 + usage.completion_tokens * 15) / 1e6
    assert usage.known_cost == pytest.approx(cost)
    assert usage.completion_tokens > 0


async def test_the_cost_of_a_model_without_a_price_is_not_known(way: Way, url: str) -> None:
    usage = (await ask(way.model, way.spec(url, "story"))).usage
    assert usage.known_cost is None
    assert describe_cost(usage).startswith("cost unknown (")


@pytest.mark.parametrize(
    ("name", "kind", "code", "says"),
    [
        ("limited", ModelUnavailable, "rate_limit", "is rate limited"),
        ("quota", ModelRefused, "quota", "no quota left .*: add credit"),
        (
            "key",
            ModelRefused,
            "auth",
            r"the key \(.*(\*{3}|REDACTED)\): set OPENAI_API_KEY",
        ),
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
        ("busy", ModelUnavailable, "overloaded", "status 5(29|00)"),
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
    says = says.replace("OPENAI_API_KEY", way.key_variable)
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


async def test_an_unknown_model_is_refused(way: Way, url: str) -> None:
    with pytest.raises(ModelRefused, match="model nobody does not exist; there are: ") as raised:
        await ask(way.model, way.spec(url, "nobody"))
    assert raised.value.code == "model_not_found"


async def test_a_wrong_key_is_refused_and_not_printed(way: Way) -> None:
    async with serve_scripts({"story": STORY}, api_key="right") as url:
        with (
            environment(**{way.key_variable: "the-wrong-one-of-all"}),
            pytest.raises(ModelRefused, match=f"set {way.key_variable} in the worker's") as raised,
        ):
            await ask(way.model, way.spec(url, "story"))
    assert raised.value.code == "auth"
    assert "the-wrong-one" not in str(raised.value)


async def test_an_unreachable_address_is_worth_a_retry(way: Way) -> None:
    async with serve_scripts({"story": STORY}) as url:
        pass
    with pytest.raises(ModelUnavailable, match=f"{way.address(url)} failed .*Connect call failed"):
        await ask(way.model, way.spec(url, "story"))


async def test_an_invalid_address_is_refused(way: Way) -> None:
    for address in ("", "localhost:8000"):
        with pytest.raises(ModelRefused, match="write it like http://") as raised:
            await ask(way.model, way.spec(address, "story"))
        assert raised.value.code == "bad_request"


@pytest.mark.parametrize("status", [401, 502])
async def test_an_error_need_not_be_json(way: Way, status: int) -> None:
    kind, says = {401: (ModelRefused, "refused the key"), 502: (ModelUnavailable, "502")}[status]
    server = Fixed(b"<html>No.</html>", "text/html", status)
    async with server.spec(f"{way.provider}/odd") as spec:
        with pytest.raises(kind, match=says):
            await ask(way.model, spec)


async def test_an_exception_handled_before_is_not_taken_for_the_cause(way: Way, url: str) -> None:
    try:
        raise ConnectionResetError("another matter")
    except ConnectionResetError:
        with pytest.raises(ModelUnavailable, match="is rate limited") as raised:
            await ask(way.model, way.spec(url, "limited"), user(str(uuid.uuid4())))
    assert "another matter" not in str(raised.value)


async def test_a_hanging_server_runs_into_the_timeout_of_the_spec(way: Way, url: str) -> None:
    with pytest.raises(ModelUnavailable, match=r"gave no answer in 0.2 s: raise its timeout"):
        await ask(way.model, way.spec(url, "hanging", timeout=0.2), user(str(uuid.uuid4())))


async def test_a_slow_stream_runs_into_the_timeout(way: Way, url: str) -> None:
    texts: list[str] = []
    with pytest.raises(ModelUnavailable, match="gave no answer in"):
        await ask(way.model, way.spec(url, "slow", timeout=0.5), texts=texts)
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
