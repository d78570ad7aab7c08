"""The scripted server, as any client of Anthropic's Messages API sees it."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio

from perdure.events.usage import Usage
from perdure.testing.script import Script, ScriptedAnswer, ScriptedFailure, ScriptedToolCall
from perdure.testing.server import serve_scripts

STORY = Script(
    name="story",
    answers=(
        ScriptedAnswer(
            content="Let me look around.",
            reasoning_content="Where am I?",
            tool_calls=(
                ScriptedToolCall(name="terminal", arguments={"command": "ls"}),
                ScriptedToolCall(name="terminal", arguments='{"half": '),
            ),
            usage=Usage(
                prompt_tokens=10,
                completion_tokens=4,
                cached_tokens=3,
                cache_write_tokens=2,
                reasoning_tokens=1,
            ),
        ),
        ScriptedAnswer(content="Done.", finish_reason="length"),
    ),
)
CUT = Script(
    name="cut",
    answers=(
        ScriptedAnswer(
            content="I am not here",
            failures=(
                ScriptedFailure(status=529, partial=True),
                ScriptedFailure(status=429, retry_after=2.5),
                ScriptedFailure(status=400, message="prompt is too long: 9 tokens > 8 maximum"),
                ScriptedFailure(disconnect=True),
            ),
        ),
    ),
)
SHORT = Script(name="short", answers=("one",), max_messages=4)


@pytest_asyncio.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    scripts = {script.name: script for script in (STORY, CUT, SHORT)}
    async with serve_scripts(scripts) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        yield client


def body(model: str, text: str = "hi", *more: dict[str, Any], **fields: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": text}, *more]
    return {"model": model, "max_tokens": 9, "messages": messages, **fields}


async def events(client: httpx.AsyncClient, request: dict[str, Any]) -> list[Any]:
    """Read the events of a stream, whose names are those in their data."""
    response = await client.post("/messages", json={**request, "stream": True})
    assert response.headers["content-type"] == "text/event-stream"
    *texts, empty = response.text.split("\n\n")
    assert empty == ""
    lines = [text.split("\n") for text in texts]
    read = [json.loads(data.removeprefix("data: ")) for _, data in lines]
    assert [name.removeprefix("event: ") for name, _ in lines] == [each["type"] for each in read]
    return read


USAGE = {
    "input_tokens": 5,
    "cache_read_input_tokens": 3,
    "cache_creation_input_tokens": 2,
    "output_tokens": 4,
    "output_tokens_details": {"thinking_tokens": 1},
}


async def test_an_unstreamed_answer_is_sent_whole(client: httpx.AsyncClient) -> None:
    answer = (await client.post("/messages", json=body("story"))).json()
    assert answer["id"].startswith("msg_")
    del answer["id"]
    assert answer == {
        "type": "message",
        "role": "assistant",
        "model": "story",
        "content": [
            {"type": "thinking", "thinking": "Where am I?", "signature": "scripted"},
            {"type": "text", "text": "Let me look around."},
            {
                "type": "tool_use",
                "id": "call_story_1_1",
                "name": "terminal",
                "input": {"command": "ls"},
            },
            {"type": "tool_use", "id": "call_story_1_2", "name": "terminal", "input": '{"half": '},
        ],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": USAGE,
    }


async def test_a_stream_sends_the_same_answer_in_events(client: httpx.AsyncClient) -> None:
    sent = await events(client, body("story"))
    start, *blocks, delta, stop = sent
    assert start["message"]["content"] == []
    assert start["message"]["usage"] == {**USAGE, "output_tokens": 1}
    assert delta["delta"] == {"stop_reason": "tool_use", "stop_sequence": None}
    assert (delta["usage"], stop) == (USAGE, {"type": "message_stop"})
    opened = [each["content_block"] for each in blocks if "content_block" in each]
    assert [each["type"] for each in opened] == ["thinking", "text", "tool_use", "tool_use"]
    written = [""] * 4
    for each in blocks:
        pieces = {k: v for k, v in each.get("delta", {}).items() if k not in ("type", "signature")}
        written[each["index"]] += "".join(pieces.values())
    assert written == [
        "Where am I?",
        "Let me look around.",
        '{"command": "ls"}',
        '{"half": ',
    ]
    assert len([each for each in blocks if each["type"] == "content_block_stop"]) == 4


async def test_the_tool_calls_in_the_request_select_the_next_answer(
    client: httpx.AsyncClient,
) -> None:
    call = {"type": "tool_use", "id": "call_story_1_1", "name": "terminal", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "call_story_1_1", "content": "."}
    request = body(
        "story",
        "hi",
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result, {"type": "text", "text": "and?"}]},
    )
    answer = (await client.post("/messages", json=request)).json()
    assert answer["content"] == [{"type": "text", "text": "Done."}]
    assert answer["stop_reason"] == "max_tokens"


async def test_the_messages_are_counted_as_in_chat_completions(client: httpx.AsyncClient) -> None:
    results = [{"type": "tool_result", "tool_use_id": f"c{nth}", "content": "."} for nth in (1, 2)]
    fits = body("short", "hi", {"role": "user", "content": results}, system="Be.")
    assert (await client.post("/messages", json=fits)).status_code == 200
    more = {"role": "user", "content": [*results, {"type": "text", "text": "and?"}]}
    response = await client.post("/messages", json=body("short", "hi", more, system="Be."))
    assert response.status_code == 400
    assert response.json()["error"]["type"] == "context_length_exceeded"


async def test_each_attempt_gets_its_failure(client: httpx.AsyncClient) -> None:
    *_, half, error = await events(client, body("cut"))
    assert half["type"] == "content_block_delta"
    fields = {"type": "overloaded_error", "message": "Overloaded"}
    assert error == {"type": "error", "error": fields}
    limited = await client.post("/messages", json=body("cut"))
    assert (limited.status_code, limited.headers["retry-after"]) == (429, "2.5")
    assert limited.json()["error"]["type"] == "rate_limit_error"
    long = (await client.post("/messages", json=body("cut"))).json()
    assert long["error"]["message"] == "prompt is too long: 9 tokens > 8 maximum"
    assert long["error"]["type"] == "invalid_request_error"
    with pytest.raises(httpx.RemoteProtocolError):
        await client.post("/messages", json=body("cut", stream=True))
    assert (await client.post("/messages", json=body("cut"))).status_code == 200


async def test_an_unknown_model_is_refused_with_the_known_ones(client: httpx.AsyncClient) -> None:
    response = await client.post("/messages", json=body("none"))
    assert response.status_code == 404
    error = response.json()["error"]
    assert error["type"] == "not_found_error"
    assert "story, cut, short" in error["message"]


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        ("{", "max_tokens"),
        ("[]", "max_tokens"),
        ('{"model": "story", "messages": []}', "max_tokens: Field required"),
        ('{"model": "story", "max_tokens": 9}', "a list of messages"),
        ('{"model": 1, "max_tokens": 9, "messages": [1]}', "a list of messages"),
    ],
)
async def test_an_invalid_body_is_refused(client: httpx.AsyncClient, sent: str, says: str) -> None:
    response = await client.post("/messages", content=sent)
    assert response.status_code == 400
    assert response.json()["error"]["type"] == "invalid_request_error"
    assert says in response.json()["error"]["message"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"x-api-key": "right"}, 200),
        ({"Authorization": "Bearer right"}, 200),
        ({"x-api-key": "wrong"}, 401),
        ({}, 401),
    ],
)
async def test_an_api_key_can_be_required(headers: dict[str, str], status: int) -> None:
    async with (
        serve_scripts({"story": STORY}, api_key="right") as url,
        httpx.AsyncClient() as client,
    ):
        answer = await client.post(f"{url}/messages", headers=headers, json=body("story"))
    assert answer.status_code == status
    assert status == 200 or answer.json()["error"]["type"] == "authentication_error"
