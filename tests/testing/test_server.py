"""The scripted server, as any client of the OpenAI protocol sees it."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from perdure.events.usage import Usage
from perdure.testing.script import Script, ScriptedAnswer, ScriptedFailure, ScriptedToolCall
from perdure.testing.server import MAX_KEPT_REQUESTS, serve_scripts

STORY = Script(
    name="story",
    answers=(
        ScriptedAnswer(
            content="Let me look around.",
            reasoning_content="Where am I?",
            tool_calls=(ScriptedToolCall(name="terminal", arguments={"command": "ls"}),),
            usage=Usage(prompt_tokens=10, completion_tokens=4, cached_tokens=3, reasoning_tokens=2),
        ),
        ScriptedAnswer(content="Done."),
    ),
)
SLOW = Script(name="slow", answers=(ScriptedAnswer(content="a b c", chunk_delay=0.01),))
CUT = Script(
    name="cut",
    answers=(
        ScriptedAnswer(
            content="I am not here", failures=(ScriptedFailure(status=503, partial=True),)
        ),
    ),
)
FAILING = Script(
    name="failing",
    answers=(
        ScriptedAnswer(
            content="At last.",
            failures=(
                ScriptedFailure(status=429, retry_after=2.5),
                ScriptedFailure(status=503, message="Not now."),
                ScriptedFailure(malformed=True),
                ScriptedFailure(disconnect=True),
                ScriptedFailure(hang=True),
            ),
        ),
    ),
)


@pytest_asyncio.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    scripts = {script.name: script for script in (STORY, SLOW, CUT, FAILING)}
    async with serve_scripts(scripts) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        yield client


def body(model: str, text: str = "hi", *more: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": text}, *more], **fields}


async def chunks(client: httpx.AsyncClient, request: dict[str, Any]) -> list[Any]:
    response = await client.post("/chat/completions", json={**request, "stream": True})
    assert response.headers["content-type"] == "text/event-stream"
    *events, end, empty = response.text.split("\n\n")
    assert (end, empty) == ("data: [DONE]", "")
    return [json.loads(event.removeprefix("data: ")) for event in events]


async def counts(client: httpx.AsyncClient, script: str) -> dict[str, int]:
    calls = (await client.get(str(client.base_url.join("/calls")))).json()["calls"]
    return next((call for call in calls if call["script"] == script), {})


async def test_an_unstreamed_answer_is_sent_whole(client: httpx.AsyncClient) -> None:
    answer = (await client.post("/chat/completions", json=body("story"))).json()
    (choice,) = answer["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"] == {
        "role": "assistant",
        "content": "Let me look around.",
        "reasoning_content": "Where am I?",
        "tool_calls": [
            {
                "id": "call_story_1_1",
                "type": "function",
                "function": {"name": "terminal", "arguments": '{"command": "ls"}'},
            }
        ],
    }
    assert answer["usage"]["total_tokens"] == 14
    assert answer["usage"]["prompt_tokens_details"] == {"cached_tokens": 3}
    assert answer["usage"]["completion_tokens_details"] == {"reasoning_tokens": 2}


async def test_a_stream_sends_the_same_answer_in_chunks(client: httpx.AsyncClient) -> None:
    sent = await chunks(client, body("story", stream_options={"include_usage": True}))
    deltas = [choice["delta"] for chunk in sent for choice in chunk["choices"]]
    calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
    assert "".join(delta.get("content", "") for delta in deltas) == "Let me look around."
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == "Where am I?"
    assert "".join(call["function"]["arguments"] for call in calls) == '{"command": "ls"}'
    assert [call["id"] for call in calls if "id" in call] == ["call_story_1_1"]
    assert len(calls) > 2
    assert sent[-1]["choices"] == []
    assert sent[-1]["usage"]["total_tokens"] == 14


async def test_usage_is_streamed_only_when_asked_for(client: httpx.AsyncClient) -> None:
    assert not any("usage" in chunk for chunk in await chunks(client, body("story")))


async def test_a_paced_answer_comes_word_by_word(client: httpx.AsyncClient) -> None:
    sent = await chunks(client, body("slow"))
    contents = [chunk["choices"][0]["delta"].get("content") for chunk in sent]
    assert [content for content in contents if content] == ["a ", "b ", "c"]


async def test_the_answers_in_the_request_select_the_next(client: httpx.AsyncClient) -> None:
    request = body("story", "hi", {"role": "assistant", "content": "x"})
    for _ in range(3):
        answer = (await client.post("/chat/completions", json=request)).json()
        assert answer["choices"][0]["message"]["content"] == "Done."
    assert (await counts(client, "story"))["answered"] == 3


async def test_a_provider_prefix_of_the_model_is_ignored(client: httpx.AsyncClient) -> None:
    assert (await client.post("/chat/completions", json=body("openai/story"))).status_code == 200


async def test_a_request_after_the_end_of_the_script_says_what_to_do(
    client: httpx.AsyncClient,
) -> None:
    request = body("slow", "hi", {"role": "assistant", "content": "a b c"})
    response = await client.post("/chat/completions", json=request)
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "script_exhausted"
    assert response.json()["error"]["message"] == (
        "The script slow has 1 answer and the conversation asked for answer 2: "
        "add answers or end with one that calls finish."
    )


async def test_each_attempt_gets_one_failure_before_the_answer(client: httpx.AsyncClient) -> None:
    request = body("failing", "once")
    limited = await client.post("/chat/completions", json=request)
    assert (limited.status_code, limited.headers["retry-after"]) == (429, "2.5")
    overloaded = await client.post("/chat/completions", json=request)
    assert overloaded.json()["error"]["message"] == "Not now."
    malformed = await client.post("/chat/completions", json=request)
    with pytest.raises(json.JSONDecodeError):
        malformed.json()
    with pytest.raises(httpx.RemoteProtocolError):
        await client.post("/chat/completions", json={**request, "stream": True})
    with pytest.raises(httpx.ReadTimeout):
        await client.post("/chat/completions", json=request, timeout=0.2)
    answer = (await client.post("/chat/completions", json=request)).json()
    assert answer["choices"][0]["message"]["content"] == "At last."
    assert (await client.post("/chat/completions", json=request)).status_code == 200


async def test_an_interrupted_stream_sends_half_of_the_answer(client: httpx.AsyncClient) -> None:
    request = body("failing", "broken", stream=True)
    for _ in range(3):
        await client.post("/chat/completions", json=request)
    seen: list[bytes] = []
    with pytest.raises(httpx.RemoteProtocolError):
        await read(client, request, seen)
    assert b"data: " in b"".join(seen)
    assert b"DONE" not in b"".join(seen)


async def read(client: httpx.AsyncClient, request: dict[str, Any], seen: list[bytes]) -> None:
    async with client.stream("POST", "/chat/completions", json=request) as response:
        async for part in response.aiter_bytes():
            seen.append(part)  # noqa: PERF401 - what came before the connection broke is kept


async def test_failures_are_counted_per_conversation(client: httpx.AsyncClient) -> None:
    for text in ("first", "second"):
        response = await client.post("/chat/completions", json=body("failing", text))
        assert response.status_code == 429


async def test_a_stream_may_send_an_error_half_way(client: httpx.AsyncClient) -> None:
    response = await client.post("/chat/completions", json=body("cut", stream=True))
    *_, half, last, rest = response.text.split("\n\n")
    assert (response.status_code, rest) == (200, "")
    assert json.loads(half.removeprefix("data: "))["choices"][0]["delta"]["content"] == " not"
    assert json.loads(last.removeprefix("data: "))["error"]["code"] == 503
    whole = await client.post("/chat/completions", json=body("cut", "not streamed"))
    assert whole.status_code == 503


async def test_headers_select_purpose_and_number(client: httpx.AsyncClient) -> None:
    async def ask(**fields: str) -> str:
        headers = {f"X-Perdure-{name}": value for name, value in fields.items()}
        response = await client.post("/chat/completions", json=body("story"), headers=headers)
        return str(response.json()["choices"][0]["message"]["content"])

    assert await ask(Number="1") == "Done."
    assert await ask(Purpose="condense") == "SUMMARY of 1 messages"
    assert await ask(Purpose="unheard of", Number="x") == "Let me look around."
    assert (await counts(client, "story.condense"))["answered"] == 1


async def test_the_newest_requests_are_listed(client: httpx.AsyncClient) -> None:
    requests = [body("story", str(nth)) for nth in range(MAX_KEPT_REQUESTS + 1)]
    for request in requests:
        await client.post("/chat/completions", json=request)
    newest = (await client.get(str(client.base_url.join("/requests")))).json()["requests"]
    assert newest == requests[1:]


async def test_calls_are_counted_by_their_outcome(client: httpx.AsyncClient) -> None:
    request = body("failing", "counted")
    for _ in range(3):
        await client.post("/chat/completions", json=request)
    with pytest.raises(httpx.RemoteProtocolError):
        await client.post("/chat/completions", json=request)
    with pytest.raises(httpx.ReadTimeout):
        await client.post("/chat/completions", json=request, timeout=0.2)
    await client.post("/chat/completions", json=request)
    async with asyncio.timeout(30):
        while (seen := await counts(client, "failing"))["disconnected"] < 1:
            await asyncio.sleep(0.01)
    assert seen == {
        "script": "failing",
        "answer": 1,
        "requested": 6,
        "answered": 1,
        "disconnected": 1,
    }


async def test_the_scripts_are_listed_as_models(client: httpx.AsyncClient) -> None:
    models = (await client.get("/models")).json()
    assert [model["id"] for model in models["data"]] == ["story", "slow", "cut", "failing"]


async def test_an_unknown_model_is_refused_with_the_known_ones(client: httpx.AsyncClient) -> None:
    response = await client.post("/chat/completions", json=body("none"))
    assert response.status_code == 404
    assert response.json()["error"]["code"] == "model_not_found"
    assert "story, slow, cut, failing" in response.json()["error"]["message"]


@pytest.mark.parametrize(
    "sent", ["{", "[]", "{}", '{"model": "story"}', '{"model": 1, "messages": [1]}']
)
async def test_an_invalid_body_is_refused(client: httpx.AsyncClient, sent: str) -> None:
    response = await client.post("/chat/completions", content=sent)
    assert response.status_code == 400
    assert "a list of messages" in response.json()["error"]["message"]


async def test_an_api_key_can_be_required() -> None:
    async with (
        serve_scripts({"story": STORY}, api_key="right") as url,
        httpx.AsyncClient() as client,
    ):
        for key, status in (("wrong", 401), ("right", 200)):
            headers = {"Authorization": f"Bearer {key}"}
            models = await client.get(f"{url}/models", headers=headers)
            answer = await client.post(
                f"{url}/chat/completions", headers=headers, json=body("story")
            )
            assert (models.status_code, answer.status_code) == (status, status)


async def test_a_taken_port_is_an_error() -> None:
    async with serve_scripts({"story": STORY}) as url:
        with pytest.raises(OSError, match="in use"):
            async with serve_scripts({"story": STORY}, port=httpx.URL(url).port or 0):
                raise AssertionError("two servers on one port")


async def test_the_server_sends_every_piece_of_an_answer_at_once() -> None:
    # Else the piece after the first waits for an acknowledgement, 40 ms on Linux.
    async with serve_scripts({"story": STORY}) as address:
        url = httpx.URL(address)
        reader, writer = await asyncio.open_connection(url.host, url.port)
        writer.write(b"GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        assert sends_without_delay(peer=writer.get_extra_info("sockname"))
        writer.close()
        await writer.wait_closed()


def sends_without_delay(peer: object) -> bool:
    """Tell whether TCP_NODELAY is set at this process's end of the connection to `peer`."""
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # no socket, or one without a peer
            end = socket.socket(fileno=int(entry.name))
            try:
                if end.getpeername() == peer:
                    return bool(end.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            finally:
                end.detach()
    raise AssertionError(f"no socket has the peer {peer}")
