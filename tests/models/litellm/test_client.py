"""litellm over real HTTP: every error, every shape of a stream."""

import asyncio
import itertools
import json
import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
import pytest_asyncio

from perdure.agent.spec import ModelSpec
from perdure.events.content import ThinkingBlock
from perdure.events.usage import Usage, describe_cost
from perdure.models.litellm.client import LiteLLM
from perdure.models.model import (
    ContextOverflow,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    Request,
)
from perdure.testing.script import Script, ScriptedAnswer, ScriptedFailure, ScriptedToolCall
from perdure.testing.server import serve_scripts
from tests.models.requests import (
    Fixed,
    ask,
    completion,
    environment,
    stream,
    text_in,
    to_message,
    user,
)

# Of litellm's stream wrapper, as it builds its types and copies its chunks.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Item .* is using the `ReadOnly` qualifier"),
    pytest.mark.filterwarnings("ignore:Accessing the 'model_(computed_)?fields' attribute"),
]

STORY = Script(
    name="story",
    answers=(
        ScriptedAnswer(
            content="Let me look, \u2028 wörld, " * 3,
            reasoning_content="Where am I?",
            tool_calls=(
                ScriptedToolCall(name="look", arguments={"at": "é"}),
                ScriptedToolCall(name="say", arguments='{"half": '),
            ),
            usage=Usage(prompt_tokens=10, completion_tokens=4, cached_tokens=3, reasoning_tokens=2),
        ),
        ScriptedAnswer(content="Done."),
    ),
)
SLOW = Script(name="slow", answers=(ScriptedAnswer(content="word " * 400, chunk_delay=0.01),))
REPEATING = Script(
    name="repeating", answers=(ScriptedAnswer(content="word " * 300, chunk_delay=1e-9),)
)
FAILURES = {
    "limited": ScriptedFailure(status=429, retry_after=7),
    "quota": ScriptedFailure(
        status=429, code="insufficient_quota", message="You exceeded your quota."
    ),
    "key": ScriptedFailure(status=401, message="Incorrect API key provided: sk-abcdefgh12345678."),
    "forbidden": ScriptedFailure(status=403),
    "missing": ScriptedFailure(status=404),
    "overflow": ScriptedFailure(status=400, code="context_length_exceeded"),
    "long": ScriptedFailure(status=400, message="This model's maximum context length is 9 tokens."),
    "policy": ScriptedFailure(status=400, code="content_policy_violation"),
    "bad": ScriptedFailure(status=400, message="temperature must be at most 2"),
    "unprocessable": ScriptedFailure(status=422),
    "timeout": ScriptedFailure(status=408),
    "conflict": ScriptedFailure(status=409),
    "broken": ScriptedFailure(status=500),
    "gateway": ScriptedFailure(status=502),
    "overloaded": ScriptedFailure(status=503, retry_after=1.5),
    "late": ScriptedFailure(status=504),
    "busy": ScriptedFailure(status=529),
    "lost": ScriptedFailure(disconnect=True),
    "malformed": ScriptedFailure(malformed=True),
    "hanging": ScriptedFailure(hang=True),
}
FAILING = {
    name: Script(name=name, answers=(ScriptedAnswer(content="At last.", failures=(failure,)),))
    for name, failure in FAILURES.items()
}


@pytest_asyncio.fixture(scope="module")
async def url() -> AsyncIterator[str]:
    async with serve_scripts(
        {**{each.name: each for each in (STORY, SLOW, REPEATING)}, **FAILING}
    ) as url:
        yield url


def model(url: str | None, name: str, provider: str = "openai", **fields: Any) -> ModelSpec:
    return ModelSpec(name=f"{provider}/{name}", api_base=url, **fields)


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
@pytest.mark.parametrize("provider", ["openai", "hosted_vllm"])
async def test_an_error_is_raised_and_the_next_attempt_succeeds(
    litellm: LiteLLM,
    url: str,
    provider: str,
    name: str,
    kind: type[ModelError],
    code: str,
    says: str,
) -> None:
    spec = model(url, name, provider)
    says = says.replace("OPENAI", provider.upper())
    question = user(f"attempt {uuid.uuid4()}")
    with pytest.raises(kind, match=says) as raised:
        await ask(litellm, spec, question)
    assert raised.value.code == code
    assert getattr(raised.value, "retry_after", None) == FAILURES[name].retry_after
    assert str(raised.value).endswith(".")
    assert "\n" not in str(raised.value)
    assert "abcdefgh" not in str(raised.value)
    assert raised.value.__cause__ is None
    assert text_in(await ask(litellm, spec, question)) == "At last."


@pytest.mark.parametrize("provider", ["openai", "hosted_vllm"])
async def test_an_answer_comes_whole_through_its_stream(
    litellm: LiteLLM, url: str, provider: str
) -> None:
    texts: list[str] = []
    answer = await ask(litellm, model(url, "story", provider), texts=texts)
    script_answer = STORY.answers[0]
    assert text_in(answer) == script_answer.content
    assert answer.message.reasoning_content == "Where am I?"
    assert [(call.id, call.name, call.arguments) for call in answer.message.tool_calls or ()] == [
        ("call_story_1_1", "look", '{"at": "é"}'),
        ("call_story_1_2", "say", '{"half": '),
    ]
    assert answer.finish_reason == "tool_calls"
    assert answer.model == f"{provider}/story"
    assert answer.id.startswith("chatcmpl-")
    assert script_answer.usage is not None
    tokens = script_answer.usage.prompt_tokens + script_answer.usage.completion_tokens
    unpriced = script_answer.usage.model_copy(update={"unpriced_tokens": tokens})
    assert answer.usage.model_copy(update={"latency": 0.0}) == unpriced
    assert answer.usage.latency > 0
    assert datetime.fromisoformat(answer.received).replace(tzinfo=UTC) <= datetime.now(UTC)
    assert texts[-1] == script_answer.content
    assert len(texts) > 2
    assert all(later.startswith(text) for text, later in itertools.pairwise(texts))


async def test_a_conversation_ends_with_its_script(litellm: LiteLLM, url: str) -> None:
    spec = model(url, "story")
    first = await ask(litellm, spec, user("go"))
    results = [
        {"role": "tool", "tool_call_id": call.id, "content": "."}
        for call in first.message.tool_calls or ()
    ]
    second = await ask(litellm, spec, user("go"), to_message(first), *results)
    assert text_in(second) == "Done."
    with pytest.raises(ModelRefused, match=r"^The script story has 2 .* calls finish\.$") as raised:
        await ask(litellm, spec, user("go"), to_message(first), *results, to_message(second))
    assert raised.value.code == "script_exhausted"


async def test_an_answer_may_repeat_itself(litellm: LiteLLM, url: str) -> None:
    for provider in ("openai", "hosted_vllm"):
        answer = await ask(litellm, model(url, "repeating", provider))
        assert text_in(answer) == "word " * 300


async def test_a_hanging_server_runs_into_the_timeout_of_the_spec(
    litellm: LiteLLM, url: str
) -> None:
    with pytest.raises(ModelUnavailable, match=r"gave no answer in 0.2 s: raise its timeout"):
        await ask(litellm, model(url, "hanging", timeout=0.2), user(str(uuid.uuid4())))


async def test_a_slow_stream_runs_into_the_timeout(litellm: LiteLLM, url: str) -> None:
    texts: list[str] = []
    with pytest.raises(ModelUnavailable, match="gave no answer in"):
        await ask(litellm, model(url, "slow", timeout=0.5), texts=texts)
    assert texts


@pytest.mark.parametrize("provider", ["openai", "hosted_vllm"])
@pytest.mark.parametrize("name", ["hanging", "slow"])
async def test_cancelling_a_call_closes_the_connection(
    litellm: LiteLLM, url: str, provider: str, name: str
) -> None:
    begun = asyncio.Event()
    request = Request(model(url, name, provider), [user(str(uuid.uuid4()))])
    before = await count(url, name)
    asking = asyncio.create_task(litellm.complete(request, lambda _: begun.set()))
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


async def test_an_unknown_model_is_refused(litellm: LiteLLM, url: str) -> None:
    with pytest.raises(ModelRefused, match="model nobody does not exist; there are: ") as raised:
        await ask(litellm, model(url, "nobody"))
    assert raised.value.code == "model_not_found"


async def test_an_unknown_provider_is_refused(litellm: LiteLLM) -> None:
    with pytest.raises(ModelRefused, match="No provider is known for nobody/knows") as raised:
        await ask(litellm, ModelSpec(name="nobody/knows"))
    assert raised.value.code == "model_not_found"


async def test_a_wrong_key_is_refused_and_not_printed(litellm: LiteLLM) -> None:
    async with serve_scripts({"story": STORY}, api_key="right") as url:
        with (
            environment(OPENAI_API_KEY="the-wrong-one-of-all"),
            pytest.raises(ModelRefused, match="set OPENAI_API_KEY in the worker's") as raised,
        ):
            await ask(litellm, model(url, "story"))
    assert raised.value.code == "auth"
    assert "the-wrong-one" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("gpt-4o", "OPENAI_API_KEY"),
        ("anthropic/claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
        ("gemini/gemini-2.5-pro", "GEMINI_API_KEY"),
        ("azure/my-deployment", "AZURE_API_KEY"),
    ],
)
async def test_a_missing_key_is_named(litellm: LiteLLM, name: str, variable: str) -> None:
    others = ("GOOGLE_API_KEY", "ANTHROPIC_AUTH_TOKEN", "AZURE_OPENAI_API_KEY")
    with (
        environment(**dict.fromkeys((variable, *others))),
        pytest.raises(ModelRefused, match=f"needs a key, .*: set {variable} in") as raised,
    ):
        await ask(litellm, ModelSpec(name=name))
    assert raised.value.code == "auth"


async def test_an_unreachable_address_is_worth_a_retry(litellm: LiteLLM) -> None:
    async with serve_scripts({"story": STORY}) as url:
        pass
    for provider in ("openai", "hosted_vllm", "anthropic"):
        with pytest.raises(ModelUnavailable, match=f"{url}.*failed .*Connect call failed"):
            await ask(litellm, model(url, "story", provider))


async def test_an_invalid_address_is_refused(litellm: LiteLLM) -> None:
    for address in ("", "localhost:8000"):
        with pytest.raises(ModelRefused, match="begin it with http://") as raised:
            await ask(litellm, model(address, "story"))
        assert raised.value.code == "bad_request"


async def test_an_unexpected_exception_is_an_internal_error(litellm: LiteLLM) -> None:
    server = Fixed(b"{}")
    async with server.spec("anthropic/claude-sonnet-4-5") as spec:
        request = Request(spec, [user("hi")], [{"type": "function", "function": 3}])
        with pytest.raises(
            ModelRefused, match=r"litellm failed on .*Error: .*: report it"
        ) as raised:
            await litellm.complete(request, lambda _: None)
    assert raised.value.code == "internal"
    assert server.requests == []


@pytest.mark.parametrize(
    ("header", "wait"), [({"retry-after-ms": "1250"}, 1.25), ({"x-ratelimit-reset": "9"}, 9.0)]
)
async def test_the_retry_delay_is_read_from_the_response(
    litellm: LiteLLM, header: dict[str, str], wait: float
) -> None:
    body = json.dumps({"error": {"message": "Slow down.", "type": "rate_limit"}}).encode()
    async with Fixed(body, status=429, headers=header).spec() as spec:
        with pytest.raises(ModelUnavailable, match="Slow down") as raised:
            await ask(litellm, spec)
    assert raised.value.retry_after == wait


@pytest.mark.parametrize("kind", ["application/json", "application/json; charset=utf-8"])
async def test_the_answer_of_a_server_without_streaming_is_read_whole(
    litellm: LiteLLM, kind: str
) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    message = {"content": "hi", "reasoning_content": "hm", "tool_calls": [call]}
    server = Fixed(completion(message, usage={"prompt_tokens": 3}), kind)
    texts: list[str] = []
    async with server.spec() as spec:
        answer = await ask(litellm, spec, texts=texts)
    assert (text_in(answer), answer.message.reasoning_content, texts) == ("hi", "hm", ["hi"])
    assert [call.name for call in answer.message.tool_calls or ()] == ["look"]
    assert (answer.id, answer.usage.prompt_tokens) == ("r-1", 3)
    assert len(server.requests) == 1


async def test_a_server_that_refuses_streaming_is_called_without_it(litellm: LiteLLM) -> None:
    server = Unstreaming()
    async with server.spec() as spec:
        for _ in range(2):
            assert text_in(await ask(litellm, spec)) == "whole"
    assert server.streamed == [True, False, False]


class Unstreaming(Fixed):
    def __init__(self) -> None:
        super().__init__(b"")
        self.streamed: list[bool] = []

    async def answer(self, request: Any) -> Any:
        request_body = json.loads(await request.body())
        self.streamed.append(request_body.get("stream", False))
        if request_body.get("stream"):
            message = {"message": "This model does not support stream=True."}
            self.body, self.status = json.dumps({"error": message}).encode(), 400
        else:
            self.body, self.status = completion({"content": "whole"}), 200
        return await super().answer(request)


@pytest.mark.parametrize(
    ("delta", "reasoning"),
    [
        ({"reasoning_content": "hm"}, "hm"),
        ({"reasoning": "hm"}, "hm"),
        ({"provider_specific_fields": {"reasoning_content": "hm"}}, "hm"),
    ],
)
async def test_reasoning_is_found_in_every_providers_field(
    litellm: LiteLLM, delta: dict[str, Any], reasoning: str
) -> None:
    async with Fixed(stream(delta, {"content": "hi"}), "text/event-stream").spec() as spec:
        answer = await ask(litellm, spec)
    assert (text_in(answer), answer.message.reasoning_content) == ("hi", reasoning)


async def test_clashing_tool_call_ids_are_replaced(litellm: LiteLLM) -> None:
    calls = [
        {"index": index, "id": id_, "function": {"name": "f", "arguments": "{}"}}
        for index, id_ in enumerate(["call_0", "call_0", "", "old"])
    ]
    old = {"id": "old", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    before = [
        user("go"),
        {"role": "assistant", "content": "", "tool_calls": [old]},
        {"role": "tool", "tool_call_id": "old", "content": "."},
    ]
    async with Fixed(stream({"tool_calls": calls}), "text/event-stream").spec() as spec:
        made = (await ask(litellm, spec, *before)).message.tool_calls or ()
    ids = [call.id for call in made]
    assert ids[0] == "call_0"
    assert len(set(ids)) == 4
    assert "old" not in ids


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
    litellm: LiteLLM, body: bytes, says: str
) -> None:
    async with Fixed(body, "text/event-stream").spec() as spec:
        with pytest.raises(ModelUnavailable, match=says):
            await ask(litellm, spec)


@pytest.mark.parametrize(
    ("body", "says"), [(b"<html>", "malformed"), (b'{"choices": []}', "no choices"), (b"", "malf")]
)
async def test_a_malformed_body_is_worth_a_retry(litellm: LiteLLM, body: bytes, says: str) -> None:
    async with Fixed(body).spec() as spec:
        with pytest.raises(ModelUnavailable, match=says):
            await ask(litellm, spec)


async def test_an_error_in_a_stream_is_classified(litellm: LiteLLM) -> None:
    error = {"message": "context length exceeded", "type": "invalid_request_error"}
    body = b"data: " + json.dumps({"error": error}).encode() + b"\n\n"
    async with Fixed(body, "text/event-stream").spec() as spec:
        with pytest.raises(ContextOverflow):
            await ask(litellm, spec)


async def test_a_filtered_answer_is_refused(litellm: LiteLLM) -> None:
    body = stream({}).replace(b'"stop"', b'"content_filter"')
    async with Fixed(body, "text/event-stream").spec() as spec:
        with pytest.raises(ModelRefused, match="filtered the whole answer") as raised:
            await ask(litellm, spec)
    assert raised.value.code == "content"


@pytest.mark.parametrize("status", [401, 502])
async def test_an_error_need_not_be_json(litellm: LiteLLM, status: int) -> None:
    kind, says = {401: (ModelRefused, "refused the key"), 502: (ModelUnavailable, "502")}[status]
    for name in ("openai/odd", "hosted_vllm/odd", "anthropic/claude-sonnet-4-5"):
        async with Fixed(b"<html>No.</html>", "text/html", status).spec(name) as spec:
            with pytest.raises(kind, match=says):
                await ask(litellm, spec)


async def test_an_exception_handled_before_is_not_taken_for_the_cause(
    litellm: LiteLLM, url: str
) -> None:
    try:
        raise ConnectionResetError("another matter")
    except ConnectionResetError:
        with pytest.raises(ModelUnavailable, match="is rate limited") as raised:
            await ask(litellm, model(url, "limited"), user(str(uuid.uuid4())))
    assert "another matter" not in str(raised.value)


async def test_a_known_model_has_its_price(litellm: LiteLLM) -> None:
    usage = {
        "prompt_tokens": 1000,
        "completion_tokens": 100,
        "total_tokens": 1100,
        "prompt_tokens_details": {"cached_tokens": 400},
    }
    async with Fixed(completion({"content": "hi"}, usage=usage)).spec("openai/gpt-4o") as spec:
        answer = await ask(litellm, spec)
    # OpenAI's list price for a million tokens: 2.50 in, 1.25 cached, 10.00 out.
    assert answer.usage.cost == pytest.approx((600 * 2.5 + 400 * 1.25 + 100 * 10) / 1e6)


async def test_the_prices_of_a_spec_count_before_the_list(litellm: LiteLLM, url: str) -> None:
    spec = model(url, "story", input_price=3.0, output_price=15.0)
    usage = (await ask(litellm, spec)).usage
    cost = (usage.prompt_tokens * 3 + usage.completion_tokens * 15) / 1e6
    assert usage.known_cost == pytest.approx(cost)
    assert usage.completion_tokens > 0


async def test_the_cost_of_a_model_without_a_price_is_not_known(litellm: LiteLLM, url: str) -> None:
    usage = (await ask(litellm, model(url, "story"))).usage
    assert usage.known_cost is None
    assert describe_cost(usage).startswith("cost unknown (")


ANTHROPIC: list[tuple[str, dict[str, Any]]] = [
    ("message_start", {"message": {"id": "m1", "usage": {"input_tokens": 9, "output_tokens": 1}}}),
    ("content_block_start", {"index": 0, "content_block": {"type": "thinking", "thinking": ""}}),
    ("content_block_delta", {"index": 0, "delta": {"type": "thinking_delta", "thinking": "h"}}),
    ("content_block_delta", {"index": 0, "delta": {"type": "thinking_delta", "thinking": "m"}}),
    ("content_block_delta", {"index": 0, "delta": {"type": "signature_delta", "signature": "s"}}),
    ("content_block_stop", {"index": 0}),
    ("content_block_start", {"index": 1, "content_block": {"type": "text", "text": ""}}),
    ("content_block_delta", {"index": 1, "delta": {"type": "text_delta", "text": "Hi "}}),
    ("content_block_delta", {"index": 1, "delta": {"type": "text_delta", "text": "there"}}),
    ("content_block_stop", {"index": 1}),
    (
        "content_block_start",
        {"index": 2, "content_block": {"type": "tool_use", "id": "t1", "name": "f", "input": {}}},
    ),
    (
        "content_block_delta",
        {"index": 2, "delta": {"type": "input_json_delta", "partial_json": '{"a"'}},
    ),
    (
        "content_block_delta",
        {"index": 2, "delta": {"type": "input_json_delta", "partial_json": ": 1}"}},
    ),
    ("content_block_stop", {"index": 2}),
    ("message_delta", {"delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 20}}),
    ("message_stop", {}),
]


def anthropic(*events: tuple[str, dict[str, Any]]) -> bytes:
    return b"".join(
        f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()
        for kind, fields in events
    )


async def test_a_provider_with_another_protocol_gives_the_same_answer(litellm: LiteLLM) -> None:
    server = Fixed(anthropic(*ANTHROPIC), "text/event-stream")
    texts: list[str] = []
    async with server.spec("anthropic/claude-sonnet-4-5") as spec:
        answer = await ask(litellm, spec, texts=texts)
    assert (text_in(answer), texts) == ("Hi there", ["Hi ", "Hi there"])
    assert answer.message.reasoning_content == "hm"
    assert answer.message.thinking_blocks == (ThinkingBlock(thinking="hm", signature="s"),)
    ((call),) = answer.message.tool_calls or ()
    assert (call.id, call.name, json.loads(call.arguments)) == ("t1", "f", {"a": 1})
    assert answer.finish_reason == "tool_calls"
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (9, 20)
    assert answer.usage.cost > 0


async def test_a_provider_with_another_protocol_gives_the_same_errors(litellm: LiteLLM) -> None:
    for status, kind, message, error in (
        (429, "rate_limit_error", "slow down", ModelUnavailable),
        (529, "overloaded_error", "Overloaded", ModelUnavailable),
        (400, "invalid_request_error", "prompt is too long: 9 > 8", ContextOverflow),
        (401, "authentication_error", "invalid x-api-key", ModelRefused),
    ):
        body = json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()
        server = Fixed(body, status=status, headers={"retry-after": "3"})
        async with server.spec("anthropic/claude-sonnet-4-5") as spec:
            with pytest.raises(error, match=message) as raised:
                await ask(litellm, spec)
        assert getattr(raised.value, "retry_after", 3) == 3
