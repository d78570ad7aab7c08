"""What an OpenAI-compatible server is sent: the same bytes by both ways."""

import copy
import json
from itertools import cycle, product
from typing import Any

import pytest

from perdure.agent.spec import ModelSpec
from perdure.models.litellm.client import LiteLLM
from perdure.models.model import Model, Request
from perdure.models.openai_compatible.client import OpenAICompatible
from perdure.models.own_server import PLACEHOLDER_KEY
from tests.models.conftest import Way
from tests.models.requests import Fixed, completion, environment, user
from tests.models.talk import CALL, TALK, TOOLS

# Of litellm's stream wrapper, as it builds its types and copies its chunks.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Item .* is using the `ReadOnly` qualifier"),
    pytest.mark.filterwarnings("ignore:Accessing the 'model_(computed_)?fields' attribute"),
]

IMAGE: dict[str, Any] = {
    "type": "image_url",
    "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="},
}
TEXT = {"type": "text", "text": "look"}
GAP: dict[str, Any] = {
    "role": "assistant",
    "content": None,
    "tool_calls": [CALL, {**CALL, "id": "c2"}],
}
RESULT: dict[str, Any] = {
    "role": "tool",
    "tool_call_id": "c1",
    "name": "look",
    "content": [TEXT, IMAGE],
}
PROMPTS: dict[str, list[dict[str, Any]]] = {
    "plain": TALK,
    "unanswered": [user("hi")],
    "nulls": [user("hi"), GAP, {**TALK[3], "name": None}],
    "reasoning": [*TALK[:2], {**TALK[2], "reasoning_content": "hm"}, TALK[3]],
    "parts": [{"role": "system", "content": [TEXT, TEXT]}, {"role": "user", "content": [TEXT]}],
    "images": [{"role": "user", "content": [TEXT, IMAGE]}, GAP, RESULT, {**RESULT, "content": "."}],
    "images last": [user("hi"), GAP, {**RESULT, "content": "."}, RESULT],
    "images twice": [user("hi"), GAP, RESULT, user("and"), GAP, RESULT, RESULT],
    "odd text": [user('\x00 \x7f "\\ \u2028 wörld 🦀')],
}
NAMES = ["openai/some-server-model", "openai/gpt-4o", "openai/gpt-4.1-mini", "openai/gpt-3.5-turbo"]
KIMI = "openai/kimi-k2-thinking"
ALL_NAMES = [*NAMES, KIMI, "openai/claude-by-a-gateway"]
SETTINGS: list[dict[str, Any]] = [
    {},
    {"temperature": 0.5, "max_output_tokens": 99, "reasoning_effort": "low"},
    {"vision": True, "reasoning_effort": "none"},
    {"vision": True, "prompt_caching": True},
    {"vision": False, "temperature": 0},
]

QUICK_PAIRS = list(zip(ALL_NAMES, cycle(SETTINGS), strict=False))
PAIRS = [
    pytest.param(*pair, marks=() if pair in QUICK_PAIRS else pytest.mark.long)
    for pair in product(ALL_NAMES, SETTINGS)
]


async def sent(model: Model, server: Fixed, request: Request) -> tuple[dict[str, str], bytes]:
    server.requests.clear()
    await model.complete(request, lambda _: None)
    ((headers, body),) = server.requests
    return headers, body


@pytest.mark.parametrize(("name", "settings"), PAIRS, ids=str)
async def test_both_ways_send_the_same_bytes(
    litellm: LiteLLM, direct: OpenAICompatible, name: str, settings: dict[str, Any]
) -> None:
    server = Fixed(completion({"content": "ok"}))
    async with server.spec(name, **settings) as spec:
        for prompt, messages in PROMPTS.items():
            for tools, stop in ((), ()), (TOOLS, ("a", "b")):
                request = Request(
                    spec, messages, tools, stop=stop, purpose="ask", number=3, key="c/7"
                )
                assert await direct.serves(request)
                headers, body = await sent(direct, server, request)
                again = await sent(direct, server, request)
                expected_headers, expected = await sent(litellm, server, request)
                assert body == again[1] == expected, prompt
                for header in ("authorization", "content-type", "accept", "idempotency-key"):
                    assert headers[header] == expected_headers[header]
                own = {each for each in expected_headers if each.startswith("x-perdure-")}
                assert {each: headers[each] for each in own} == {
                    each: expected_headers[each] for each in own
                }


@pytest.mark.parametrize("model", [KIMI, NAMES[0]])
async def test_only_models_that_need_their_reasoning_get_it_back(
    direct: OpenAICompatible, model: str
) -> None:
    server = Fixed(completion({"content": "ok"}))
    async with server.spec(model) as spec:
        _, body = await sent(direct, server, Request(spec, PROMPTS["reasoning"]))
    assert ("reasoning_content" in json.loads(body)["messages"][2]) == (model == KIMI)


async def test_a_growing_conversation_is_sent_whole_each_time(direct: OpenAICompatible) -> None:
    server = Fixed(completion({"content": "ok"}))
    messages: list[dict[str, Any]] = []
    async with server.spec(vision=True) as spec:
        for number in range(20):
            messages.append(user(f"message {number}"))
            _, body = await sent(direct, server, Request(spec, messages))
            assert json.loads(body)["messages"] == messages
        blind = spec.model_copy(update={"vision": False})
        seen = {"role": "user", "content": [IMAGE]}
        for each, part in ((spec, "image_url"), (blind, "An image was here"), (spec, "image_url")):
            _, body = await sent(direct, server, Request(each, [*messages, seen]))
            assert part in body.decode()


async def test_a_text_that_has_no_utf8_is_sent_with_a_mark(direct: OpenAICompatible) -> None:
    server = Fixed(completion({"content": "ok"}))
    async with server.spec() as spec:
        _, body = await sent(direct, server, Request(spec, [user("a \udc80 b")]))
    assert json.loads(body)["messages"] == [user("a ? b")]


async def test_tools_that_litellm_rewrites_are_left_to_it(direct: OpenAICompatible) -> None:
    tool: dict[str, Any] = TOOLS[0]
    spec = ModelSpec(name="openai/m", api_base="http://127.0.0.1:1/v1")
    openai = ModelSpec(name="openai/gpt-4o")
    for schema, own, hosted in (
        ({"type": "object", "properties": {"pattern": {"type": "string"}}}, True, True),
        ({"properties": {"a": {"items": [{"pattern": r"^\p{L}+$"}]}}}, False, False),
        ({"patternProperties": {r"\p{L}": {}}}, False, False),
        ({"patternProperties": {"^x-": {}}}, True, True),
        ({"anyOf": [{"type": "object"}]}, True, False),
    ):
        odd = {**tool, "function": {**tool["function"], "parameters": schema}}
        assert await direct.serves(Request(spec, [user("hi")], [tool, odd])) is own
        assert await direct.serves(Request(openai, [user("hi")], [odd])) is hosted


async def test_a_server_without_keys_gets_a_placeholder(chat_way: Way) -> None:
    server = Fixed(completion({"content": "ok"}))
    with environment(OPENAI_API_KEY=None, HOSTED_VLLM_API_KEY=None):
        async with server.spec(f"{chat_way.provider}/odd") as spec:
            headers, _ = await sent(chat_way.model, server, Request(spec, TALK))
    assert headers["authorization"] == f"Bearer {PLACEHOLDER_KEY}"


async def test_a_key_in_the_environment_is_used(openai_way: Way) -> None:
    server = Fixed(completion({"content": "ok"}))
    with environment(OPENAI_API_KEY="the-key-of-this-test", OPENAI_ORGANIZATION="org"):
        async with server.spec() as spec:
            headers, _ = await sent(openai_way.model, server, Request(spec, TALK))
    assert headers["authorization"] == "Bearer the-key-of-this-test"
    assert headers["openai-organization"] == "org"


async def test_a_request_leaves_its_messages_and_tools_unchanged(chat_way: Way) -> None:
    server = Fixed(completion({"content": "ok"}))
    async with server.spec(f"{chat_way.provider}/some-model") as spec:
        for messages in PROMPTS.values():
            before = copy.deepcopy((messages, TOOLS))
            await chat_way.model.complete(Request(spec, messages, TOOLS), lambda _: None)
            assert (messages, TOOLS) == before


@pytest.mark.parametrize(
    ("fields", "headers"),
    [
        ({"purpose": "condense", "number": 0}, {"purpose": "condense", "number": "0"}),
        ({"number": 7}, {"number": "7"}),
        ({}, {}),
    ],
)
async def test_a_self_hosted_server_gets_purpose_and_number(
    chat_way: Way, fields: dict[str, Any], headers: dict[str, str]
) -> None:
    server = Fixed(completion({"content": "ok"}))
    async with server.spec(f"{chat_way.provider}/odd") as spec:
        all_headers, _ = await sent(chat_way.model, server, Request(spec, [user("hi")], **fields))
    own_headers = {
        name[10:]: value for name, value in all_headers.items() if name.startswith("x-perdure-")
    }
    assert own_headers == headers


async def test_metadata_goes_with_a_request_by_both_ways(
    litellm: LiteLLM, direct: OpenAICompatible
) -> None:
    server, metadata = Fixed(completion({"content": "ok"})), {"team": "blue", "run": "7"}
    async with server.spec(NAMES[0]) as spec:
        request = Request(spec, [user("hi")], TOOLS, metadata=metadata)
        _, body = await sent(direct, server, request)
        assert (await sent(litellm, server, request))[1] == body
    assert json.loads(body)["metadata"] == metadata
