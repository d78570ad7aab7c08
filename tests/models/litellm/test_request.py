"""The requests that reach the provider: the fast path must not change a byte of them."""

import copy
import dataclasses
import json
from typing import Any

import pytest

from perdure.agent.spec import ModelSpec
from perdure.models.litellm.client import LiteLLM
from perdure.models.litellm.route import PLACEHOLDER_KEY, is_sent_unchanged
from perdure.models.model import ModelUnavailable, Request
from tests.models.requests import Fixed, completion, environment, user

# Of litellm's stream wrapper, as it builds its types and copies its chunks.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Item .* is using the `ReadOnly` qualifier"),
    pytest.mark.filterwarnings("ignore:Accessing the 'model_(computed_)?fields' attribute"),
]

CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": "é"}'}}
TALK: list[dict[str, Any]] = [
    {"role": "system", "content": "You are careful."},
    user("hello \u2028 wörld"),
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "name": "look", "content": "nothing"},
    {"role": "assistant", "content": "Nothing there."},
    user("go on"),
]
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "look",
            "description": "Look.",
            "parameters": {
                "type": "object",
                "properties": {"at": {"type": "string", "pattern": "^[a-z]+$"}},
                "required": ["at"],
            },
        },
    }
]
REASONED = [*TALK[:2], {**TALK[2], "reasoning_content": "hm"}, *TALK[3:]]
NAMES = ["openai/some-server-model", "openai/gpt-4o", "openai/gpt-4.1-mini", "openai/gpt-3.5-turbo"]
KIMI = "openai/kimi-k2-thinking"


async def sent(
    litellm: LiteLLM, spec: ModelSpec, server: Fixed, request: Request, direct: bool
) -> bytes:
    """Return the body that the server gets, by the fast path or by litellm's own."""
    server.requests.clear()
    await litellm.complete(request, lambda _: None)
    route = litellm.routes[spec]
    litellm.routes[spec] = dataclasses.replace(route, direct=direct)
    server.requests.clear()
    await litellm.complete(request, lambda _: None)
    litellm.routes[spec] = route
    ((_, body),) = server.requests
    return body


@pytest.mark.parametrize("name", [*NAMES, KIMI])
@pytest.mark.parametrize("tools", [(), TOOLS], ids=["no tools", "tools"])
async def test_the_fast_path_sends_the_same_bytes(
    litellm: LiteLLM, name: str, tools: list[dict[str, Any]]
) -> None:
    server = Fixed(completion({"content": "ok"}))
    async with server.spec(name, temperature=0.5, max_output_tokens=99) as spec:
        request = Request(spec, REASONED, tools)
        short = await sent(litellm, spec, server, request, direct=True)
        assert litellm.routes[spec].direct
        assert short == await sent(litellm, spec, server, request, direct=False)
    body = json.loads(short)
    assert body["messages"] == (REASONED if name == KIMI else TALK)
    assert body["model"] == name.removeprefix("openai/")
    assert body.get("tools", []) == list(tools)
    assert (body["temperature"], body["max_tokens"]) == (0.5, 99)
    assert body["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize("name", NAMES)
async def test_a_conversation_with_tool_calls_takes_the_fast_path(
    litellm: LiteLLM, name: str
) -> None:
    call = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    server = Fixed(completion({"content": "ok"}))
    async with server.spec(name) as spec:
        request = Request(spec, [*TALK[:2], call, *TALK[3:]], TOOLS)
        fast = await sent(litellm, spec, server, request, direct=True)
        assert fast == await sent(litellm, spec, server, request, direct=False)
        assert "extra_body" in litellm._arguments(request)
    assert json.loads(fast)["messages"][2] == {"role": "assistant", "tool_calls": [CALL]}


@pytest.mark.parametrize("name", ["openai/gpt-5", "openai/o3-mini", "openai/o1"])
async def test_models_whose_requests_litellm_rewrites_do_not_take_the_fast_path(
    litellm: LiteLLM, name: str
) -> None:
    server = Fixed(b"{}", status=500)
    async with server.spec(name) as spec:
        with pytest.raises(Exception, match="status 500"):
            await litellm.complete(Request(spec, TALK, TOOLS), lambda _: None)
        assert not litellm.routes[spec].direct
    ((_, body),) = server.requests
    assert "go on" in body.decode()


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {"role": "user", "content": "hi", "cache_control": {"type": "ephemeral"}},
        {"role": "", "content": "hi"},
    ],
)
def test_messages_that_litellm_changes_do_not_take_the_fast_path(message: dict[str, Any]) -> None:
    assert is_sent_unchanged(TALK)
    assert not is_sent_unchanged([*TALK, message])


@pytest.mark.parametrize("name", [NAMES[0], "openai/gpt-5", "hosted_vllm/some-model"])
async def test_a_request_leaves_its_messages_and_tools_unchanged(
    litellm: LiteLLM, name: str
) -> None:
    image = {"type": "image_url", "image_url": "data:image/png;base64,AAAA"}
    marked = {"role": "user", "content": [{"type": "text", "text": "x"}, image]}
    gap = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    for messages in (TALK, [*TALK, marked, gap, TALK[3]]):
        server = Fixed(completion({"content": "ok"}))
        async with server.spec(name) as spec:
            before = copy.deepcopy((messages, TOOLS))
            await litellm.complete(Request(spec, messages, TOOLS), lambda _: None)
            assert (messages, TOOLS) == before


async def test_a_server_without_keys_gets_a_placeholder(litellm: LiteLLM) -> None:
    server = Fixed(completion({"content": "ok"}))
    with environment(OPENAI_API_KEY=None):
        async with server.spec() as spec:
            await litellm.complete(Request(spec, TALK), lambda _: None)
    ((headers, _),) = server.requests
    assert headers["authorization"] == f"Bearer {PLACEHOLDER_KEY}"


async def test_a_key_in_the_environment_is_used(litellm: LiteLLM) -> None:
    server = Fixed(completion({"content": "ok"}))
    with environment(OPENAI_API_KEY="the-key-of-this-test"):
        async with server.spec() as spec:
            await litellm.complete(Request(spec, TALK), lambda _: None)
    ((headers, _),) = server.requests
    assert headers["authorization"] == "Bearer the-key-of-this-test"


PNG = "data:image/png;base64,iVBORw0KGgo="
SEEN: list[dict[str, Any]] = [
    {
        "role": "system",
        "content": [{"type": "text", "text": "Always."}, {"type": "text", "text": "Today."}],
    },
    user("look"),
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{**CALL, "id": "c1__thought__c2ln"}],
        "reasoning_content": "hm",
        "thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "s"}],
    },
    {
        "role": "tool",
        "tool_call_id": "c1__thought__c2ln",
        "name": "look",
        "content": [{"type": "image_url", "image_url": {"url": PNG}}],
    },
]


async def capture_request(
    litellm: LiteLLM, name: str, talk: list[dict[str, Any]], **fields: Any
) -> Any:
    """Return the request that the provider gets."""
    server = Fixed(b'{"error": {"message": "later"}}', status=500)
    async with server.spec(name, **fields) as spec:
        with pytest.raises(ModelUnavailable, match="later"):
            await litellm.complete(Request(spec, talk, TOOLS), lambda _: None)
    ((_, body),) = server.requests
    return json.loads(body)


async def test_claude_gets_thinking_images_and_marks(litellm: LiteLLM) -> None:
    body = await capture_request(
        litellm, "anthropic/claude-sonnet-4-5", SEEN, reasoning_effort="low"
    )
    mark = {"type": "ephemeral"}
    assert [part.get("cache_control") for part in body["system"]] == [mark, None]
    thought, call = body["messages"][1]["content"]
    assert thought == {"type": "thinking", "thinking": "hm", "signature": "s"}
    (result,) = body["messages"][2]["content"]
    assert (call["id"], result["tool_use_id"], result["cache_control"]) == ("c1", "c1", mark)
    assert [part["type"] for part in result["content"]] == ["image"]
    assert body["thinking"]["type"] == "enabled"
    assert body["max_tokens"] == 64_000, "thinking leaves as much room for the answer"


async def test_claude_does_not_think_after_a_call_without_thinking(litellm: LiteLLM) -> None:
    bare = [{**each, "thinking_blocks": []} for each in SEEN]
    body = await capture_request(
        litellm, "anthropic/claude-sonnet-4-5", bare, reasoning_effort="low"
    )
    assert "thinking" not in body


async def test_gemini_gets_its_signature_back(litellm: LiteLLM) -> None:
    body = await capture_request(litellm, "gemini/gemini-2.5-pro", SEEN)
    assert body["contents"][1]["parts"][0]["thoughtSignature"] == "c2ln"
    assert "inline_data" in json.dumps(body["contents"][2])


async def test_openai_gets_neither_reasoning_nor_images_in_results(litellm: LiteLLM) -> None:
    body = await capture_request(litellm, "openai/gpt-5", SEEN, reasoning_effort="minimal")
    system, _, call, result, image = body["messages"]
    assert system["content"] == "Always.\nToday."
    assert call["tool_calls"][0]["id"] == result["tool_call_id"] == "c1"
    assert not {"reasoning_content", "thinking_blocks"} & call.keys()
    assert (result["role"], type(result["content"])) == ("tool", str)
    assert (image["role"], image["content"][1]["image_url"]["url"]) == ("user", PNG)
    assert body["reasoning_effort"] == "minimal"
    plain = await capture_request(litellm, "openai/gpt-4o", SEEN, reasoning_effort="minimal")
    assert "reasoning_effort" not in plain
