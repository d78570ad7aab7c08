"""Answers of OpenAI-compatible servers over real HTTP, directly and through litellm."""

import json
from typing import Any

import pytest

from tests.models.conftest import Way
from tests.models.requests import (
    Fixed,
    ask,
    completion,
    stream,
    text_in,
    user,
)

# Of litellm's stream wrapper, as it builds its types and copies its chunks.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Item .* is using the `ReadOnly` qualifier"),
    pytest.mark.filterwarnings("ignore:Accessing the 'model_(computed_)?fields' attribute"),
]


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
    chat_way: Way, delta: dict[str, Any], reasoning: str
) -> None:
    async with Fixed(stream(delta, {"content": "hi"}), "text/event-stream").spec() as spec:
        answer = await ask(chat_way.model, spec)
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


@pytest.mark.long
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
