"""litellm over real HTTP, where it is needed: other providers, and their protocols."""

import json
from typing import Any

import pytest

from perdure.agent.spec import ModelSpec
from perdure.events.content import ThinkingBlock
from perdure.models.litellm.client import LiteLLM
from perdure.models.model import (
    ContextOverflow,
    ModelRefused,
    ModelUnavailable,
    Request,
)
from tests.models.requests import (
    Fixed,
    ask,
    environment,
    text_in,
    user,
)

# Of litellm's stream wrapper, as it builds its types and copies its chunks.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Item .* is using the `ReadOnly` qualifier"),
    pytest.mark.filterwarnings("ignore:Accessing the 'model_(computed_)?fields' attribute"),
]


async def test_an_unknown_provider_is_refused(litellm: LiteLLM) -> None:
    with pytest.raises(ModelRefused, match="No provider is known for nobody/knows") as raised:
        await ask(litellm, ModelSpec(name="nobody/knows"))
    assert raised.value.code == "model_not_found"


async def test_an_error_of_another_protocol_need_not_be_json(litellm: LiteLLM) -> None:
    name = "anthropic/claude-sonnet-4-5"
    async with Fixed(b"<html>No.</html>", "text/html", 401).spec(name) as spec:
        with pytest.raises(ModelRefused, match="refused the key"):
            await ask(litellm, spec)


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
