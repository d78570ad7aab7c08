"""Answers of Anthropic's Messages API over real HTTP, directly and through litellm."""

import json
from typing import Any

import pytest

from perdure.agent.calls.completion import Completion
from perdure.events.content import RedactedThinkingBlock, ThinkingBlock
from perdure.models.anthropic.client import Anthropic
from perdure.models.model import ModelRefused
from tests.models.anthropic_events import (
    THOUGHTFUL,
    Event,
    answer,
    call_block,
    events,
    said,
    text_block,
)
from tests.models.conftest import Way
from tests.models.requests import Fixed, ask, text_in, user

# Of litellm's stream wrapper, as it builds its types and copies its chunks.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Item .* is using the `ReadOnly` qualifier"),
    pytest.mark.filterwarnings("ignore:Accessing the 'model_(computed_)?fields' attribute"),
]

NAME = "anthropic/claude-sonnet-4-5"


async def complete(way: Way, body: bytes, name: str = NAME, **fields: Any) -> Completion:
    async with Fixed(body, "text/event-stream").spec(name, **fields) as spec:
        return await ask(way.model, spec)


async def test_an_answer_with_thoughts_and_a_call_is_read_whole(anthropic_way: Way) -> None:
    server, texts = Fixed(events(*THOUGHTFUL), "text/event-stream"), list[str]()
    async with server.spec(NAME) as spec:
        response = await ask(anthropic_way.model, spec, texts=texts)
    assert (text_in(response), texts) == ("Hi there", ["Hi ", "Hi there"])
    assert response.message.reasoning_content == "hm"
    assert response.message.thinking_blocks == (ThinkingBlock(thinking="hm", signature="s"),)
    ((call),) = response.message.tool_calls or ()
    assert (call.id, call.name, json.loads(call.arguments)) == ("t1", "f", {"a": 1})
    assert response.finish_reason == "tool_calls"
    assert (response.usage.prompt_tokens, response.usage.completion_tokens) == (9, 20)
    assert response.usage.cost == pytest.approx((9 * 3 + 20 * 15) / 1e6)


@pytest.mark.parametrize(
    ("reason", "finish_reason"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("pause_turn", "stop"),
        ("max_tokens", "length"),
        ("refusal", "content_filter"),
        ("of_tomorrow", "stop"),
        (None, "stop"),
    ],
)
async def test_the_reason_of_the_end_is_named_as_by_others(
    anthropic_way: Way, reason: str | None, finish_reason: str
) -> None:
    response = await complete(anthropic_way, said("so", reason=reason))
    assert (text_in(response), response.finish_reason) == ("so", finish_reason)


async def test_an_answer_at_the_end_of_the_context_window_is_cut(anthropic: Anthropic) -> None:
    body = said("so", reason="model_context_window_exceeded")
    assert (await complete(Way(anthropic), body)).finish_reason == "length"


async def test_a_refusal_without_words_is_refused(anthropic_way: Way) -> None:
    with pytest.raises(ModelRefused, match="filtered the whole answer") as raised:
        await complete(anthropic_way, answer(reason="refusal"))
    assert raised.value.code == "content"


async def test_the_pieces_of_several_calls_are_put_together(anthropic_way: Way) -> None:
    blocks = [
        *text_block(0, "Two: "),
        *call_block(1, "look", "t1", '{"at"', ': "', "é\u2028", '"}'),
        *call_block(2, "look", "t2"),
        *call_block(3, "say", "t3", "", '{"half": '),
    ]
    response = await complete(anthropic_way, answer(*blocks, reason="tool_use"))
    assert [(call.id, call.name, call.arguments) for call in response.message.tool_calls or ()] == [
        ("t1", "look", '{"at": "é\u2028"}'),
        ("t2", "look", "{}"),
        ("t3", "say", '{"half": '),
    ]


async def test_thoughts_keep_their_order_and_signatures(anthropic_way: Way) -> None:
    def thought(index: int, *deltas: dict[str, Any]) -> list[Event]:
        start = {"type": "thinking", "thinking": "", "signature": ""}
        return [
            ("content_block_start", {"index": index, "content_block": start}),
            *(("content_block_delta", {"index": index, "delta": delta}) for delta in deltas),
            ("content_block_stop", {"index": index}),
        ]

    def words(text: str) -> dict[str, Any]:
        return {"type": "thinking_delta", "thinking": text}

    def signed(text: str) -> dict[str, Any]:
        return {"type": "signature_delta", "signature": text}

    dark = {"index": 1, "content_block": {"type": "redacted_thinking", "data": "xyz"}}
    blocks = [
        *thought(0, words("a"), words("b"), signed("1")),
        ("content_block_start", dark),
        ("content_block_stop", {"index": 1}),
        *thought(2, signed("2")),
        *text_block(3, "so"),
    ]
    response = await complete(anthropic_way, answer(*blocks))
    assert response.message.thinking_blocks == (
        ThinkingBlock(thinking="ab", signature="1"),
        RedactedThinkingBlock(data="xyz"),
        ThinkingBlock(thinking="", signature="2"),
    )
    assert response.message.reasoning_content == "ab"


async def test_events_that_are_not_known_are_skipped(anthropic_way: Way) -> None:
    blocks: list[Event] = [
        ("ping", {}),
        ("of_tomorrow", {"index": 0}),
        *text_block(0, "so"),
    ]
    assert text_in(await complete(anthropic_way, answer(*blocks))) == "so"


async def test_clashing_ids_of_calls_are_replaced(anthropic_way: Way) -> None:
    old = {"id": "old", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    before = [
        user("go"),
        {"role": "assistant", "content": "", "tool_calls": [old]},
        {"role": "tool", "tool_call_id": "old", "content": "."},
    ]
    blocks = [*call_block(0, "f", "t", "{}"), *call_block(1, "g", "old", "{}")]
    body = answer(*blocks, reason="tool_use")
    async with Fixed(body, "text/event-stream").spec(NAME) as spec:
        response = await ask(anthropic_way.model, spec, *before)
    first, second = response.message.tool_calls or ()
    assert (first.id, first.name, second.name) == ("t", "f", "g")
    assert second.id != "old"


USAGES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"input_tokens": 100, "output_tokens": 1}, {"output_tokens": 50}),
    ({"input_tokens": 100, "output_tokens": 1}, {"input_tokens": 110, "output_tokens": 50}),
    (
        {
            "input_tokens": 10,
            "cache_read_input_tokens": 4000,
            "cache_creation_input_tokens": 300,
            "output_tokens": 1,
        },
        {"output_tokens": 50},
    ),
    (
        {
            "input_tokens": 10,
            "cache_creation_input_tokens": 300,
            "cache_creation": {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 200},
            "output_tokens": 1,
            "service_tier": "standard",
            "inference_geo": "us",
        },
        {"output_tokens": 50, "output_tokens_details": {"thinking_tokens": 20}},
    ),
    (
        {"input_tokens": 150_000, "cache_read_input_tokens": 9000, "output_tokens": 1},
        {"output_tokens": 50, "cache_read_input_tokens": None},
    ),
    (
        {"input_tokens": 1, "output_tokens": 1},
        {"output_tokens": 9, "iterations": [{"input_tokens": 7, "output_tokens": 4}] * 2},
    ),
]


@pytest.mark.parametrize(("start", "end"), USAGES, ids=str)
@pytest.mark.parametrize(
    "model", ["claude-sonnet-4-5", "claude-sonnet-4-6", "claude-haiku-5-5", "claude-opus-5-5"]
)
async def test_both_ways_count_the_same_tokens_and_cost(
    anthropic: Anthropic, litellm: Any, model: str, start: dict[str, Any], end: dict[str, Any]
) -> None:
    body = answer(*text_block(0, "so"), start_usage=start, usage=end)
    usages = []
    for each in (anthropic, litellm):
        async with Fixed(body, "text/event-stream").spec(f"anthropic/{model}") as spec:
            usage = (await ask(each, spec)).usage
        usages.append(usage.model_copy(update={"latency": 0.0, "cost": round(usage.cost, 12)}))
    assert usages[0] == usages[1]
    assert usages[0].cost > 0


async def test_thoughts_that_anthropic_does_not_count_are_not_guessed(anthropic: Anthropic) -> None:
    response = await complete(Way(anthropic), events(*THOUGHTFUL))
    assert response.usage.reasoning_tokens == 0


WHOLE = {
    "id": "m1",
    "type": "message",
    "role": "assistant",
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "redacted_thinking", "data": "xyz"},
        {"type": "text", "text": "Hi "},
        {"type": "text", "text": "there"},
        {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}},
        {"type": "tool_use", "id": "t2", "name": "g", "input": {}},
    ],
    "stop_reason": "tool_use",
    "usage": {"input_tokens": 9, "output_tokens": 20, "cache_read_input_tokens": 5},
}


def check_whole(response: Completion) -> None:
    assert (response.id, text_in(response)) == ("m1", "Hi there")
    assert response.message.reasoning_content == "hm"
    assert response.message.thinking_blocks == (
        ThinkingBlock(thinking="hm", signature="s"),
        RedactedThinkingBlock(data="xyz"),
    )
    calls = [(call.id, call.name, call.arguments) for call in response.message.tool_calls or ()]
    assert calls == [("t1", "f", '{"a": 1}'), ("t2", "g", "{}")]
    assert response.finish_reason == "tool_calls"
    assert (response.usage.prompt_tokens, response.usage.cached_tokens) == (14, 5)


async def test_the_answer_of_a_server_without_streaming_is_read_whole(anthropic: Anthropic) -> None:
    texts: list[str] = []
    async with Fixed(json.dumps(WHOLE).encode()).spec(NAME) as spec:
        response = await ask(anthropic, spec, texts=texts)
    check_whole(response)
    assert texts == ["Hi there"]


async def test_a_server_that_refuses_streaming_is_called_without_it(anthropic: Anthropic) -> None:
    server = Unstreaming(b"")
    async with server.spec(NAME) as spec:
        for _ in range(2):
            check_whole(await ask(anthropic, spec))
    assert [json.loads(body).get("stream") for _, body in server.requests] == [True, None, None]


class Unstreaming(Fixed):
    """A server that refuses to stream."""

    async def answer(self, request: Any) -> Any:
        if json.loads(await request.body()).get("stream"):
            error = {"type": "invalid_request_error", "message": "stream: not supported"}
            self.body, self.status = json.dumps({"type": "error", "error": error}).encode(), 400
        else:
            self.body, self.status = json.dumps(WHOLE).encode(), 200
        return await super().answer(request)
