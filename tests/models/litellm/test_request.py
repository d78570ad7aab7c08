"""The requests that reach the providers which litellm calls."""

import json
from typing import Any

import pytest

from perdure.models.litellm.client import LiteLLM
from perdure.models.model import ModelUnavailable, Request
from tests.models.requests import Fixed, user
from tests.models.talk import CALL, TOOLS

# Of litellm's stream wrapper, as it builds its types and copies its chunks.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Item .* is using the `ReadOnly` qualifier"),
    pytest.mark.filterwarnings("ignore:Accessing the 'model_(computed_)?fields' attribute"),
]

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


@pytest.mark.long
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
