"""Answers of OpenAI-compatible servers over real HTTP, directly and through litellm."""

import itertools
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from perdure.events.usage import describe_cost
from perdure.models.model import (
    ModelRefused,
)
from tests.models.conftest import Way
from tests.models.requests import (
    Fixed,
    ask,
    completion,
    stream,
    text_in,
    to_message,
    user,
)
from tests.models.scripts import STORY

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


async def test_a_conversation_ends_with_its_script(openai_way: Way, url: str) -> None:
    spec = openai_way.spec(url, "story")
    first = await ask(openai_way.model, spec, user("go"))
    results = [
        {"role": "tool", "tool_call_id": call.id, "content": "."}
        for call in first.message.tool_calls or ()
    ]
    second = await ask(openai_way.model, spec, user("go"), to_message(first), *results)
    assert text_in(second) == "Done."
    with pytest.raises(ModelRefused, match=r"^The script story has 2 .* calls finish\.$") as raised:
        await ask(
            openai_way.model, spec, user("go"), to_message(first), *results, to_message(second)
        )
    assert raised.value.code == "script_exhausted"


async def test_an_answer_may_repeat_itself(way: Way, url: str) -> None:
    answer = await ask(way.model, way.spec(url, "repeating"))
    assert text_in(answer) == "word " * 300


@pytest.mark.parametrize("kind", ["application/json", "application/json; charset=utf-8"])
async def test_the_answer_of_a_server_without_streaming_is_read_whole(
    openai_way: Way, kind: str
) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    message = {"content": "hi", "reasoning_content": "hm", "tool_calls": [call]}
    server = Fixed(completion(message, usage={"prompt_tokens": 3}), kind)
    texts: list[str] = []
    async with server.spec() as spec:
        answer = await ask(openai_way.model, spec, texts=texts)
    assert (text_in(answer), answer.message.reasoning_content, texts) == ("hi", "hm", ["hi"])
    assert [call.name for call in answer.message.tool_calls or ()] == ["look"]
    assert (answer.id, answer.usage.prompt_tokens) == ("r-1", 3)
    assert len(server.requests) == 1


async def test_a_server_that_refuses_streaming_is_called_without_it(openai_way: Way) -> None:
    server = Unstreaming()
    async with server.spec() as spec:
        for _ in range(2):
            assert text_in(await ask(openai_way.model, spec)) == "whole"
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
    way: Way, delta: dict[str, Any], reasoning: str
) -> None:
    async with Fixed(stream(delta, {"content": "hi"}), "text/event-stream").spec() as spec:
        answer = await ask(way.model, spec)
    assert (text_in(answer), answer.message.reasoning_content) == ("hi", reasoning)


async def test_clashing_tool_call_ids_are_replaced(openai_way: Way) -> None:
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
        made = (await ask(openai_way.model, spec, *before)).message.tool_calls or ()
    ids = [call.id for call in made]
    assert ids[0] == "call_0"
    assert len(set(ids)) == 4
    assert "old" not in ids


async def test_a_known_model_has_its_price(openai_way: Way) -> None:
    usage = {
        "prompt_tokens": 1000,
        "completion_tokens": 100,
        "total_tokens": 1100,
        "prompt_tokens_details": {"cached_tokens": 400},
    }
    async with Fixed(completion({"content": "hi"}, usage=usage)).spec("openai/gpt-4o") as spec:
        answer = await ask(openai_way.model, spec)
    # OpenAI's list price for a million tokens: 2.50 in, 1.25 cached, 10.00 out.
    assert answer.usage.cost == pytest.approx((600 * 2.5 + 400 * 1.25 + 100 * 10) / 1e6)


async def test_the_prices_of_a_spec_count_before_the_list(openai_way: Way, url: str) -> None:
    spec = openai_way.spec(url, "story", input_price=3.0, output_price=15.0)
    usage = (await ask(openai_way.model, spec)).usage
    cost = (usage.prompt_tokens * 3 + usage.completion_tokens * 15) / 1e6
    assert usage.known_cost == pytest.approx(cost)
    assert usage.completion_tokens > 0


async def test_the_cost_of_a_model_without_a_price_is_not_known(openai_way: Way, url: str) -> None:
    usage = (await ask(openai_way.model, openai_way.spec(url, "story"))).usage
    assert usage.known_cost is None
    assert describe_cost(usage).startswith("cost unknown (")
