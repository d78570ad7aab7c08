"""What Anthropic is sent: by both ways the same, as litellm really sends it to a server."""

import asyncio
import copy
import json
from itertools import cycle, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.agent.spec import ModelSpec
from perdure.models import price_table
from perdure.models.anthropic.client import Anthropic
from perdure.models.litellm.client import LiteLLM
from perdure.models.model import Model, Request
from perdure.models.own_server import PLACEHOLDER_KEY
from tests.models.anthropic_events import said
from tests.models.conftest import Way
from tests.models.requests import Fixed, calm, environment, user
from tests.models.talk import CALL, TALK, TOOLS

# Of litellm's stream wrapper, as it builds its types and copies its chunks.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Item .* is using the `ReadOnly` qualifier"),
    pytest.mark.filterwarnings("ignore:Accessing the 'model_(computed_)?fields' attribute"),
]

PNG = "data:image/png;base64,iVBORw0KGgo="
IMAGE: dict[str, Any] = {"type": "image_url", "image_url": {"url": PNG}}
LINK: dict[str, Any] = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
TEXT = {"type": "text", "text": "look"}
SYSTEM = {"role": "system", "content": [{**TEXT, "text": "Always."}, {**TEXT, "text": "Today."}]}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s"}
REDACTED = {"type": "redacted_thinking", "data": "dark"}
GAP: dict[str, Any] = {
    "role": "assistant",
    "content": None,
    "tool_calls": [CALL, {**CALL, "id": "c2"}],
}
RESULT: dict[str, Any] = {"role": "tool", "tool_call_id": "c1", "name": "look", "content": "."}
SEEN = {**RESULT, "content": [TEXT, IMAGE]}
SIGNED = {**CALL, "id": "c1__thought__c2ln"}
THINKING = {**GAP, "reasoning_content": "hm", "thinking_blocks": [THOUGHT, REDACTED]}
BAD_ID = {**GAP, "tool_calls": [{**CALL, "id": "functions.look:0"}]}
LATER: list[dict[str, Any]] = [{**RESULT, "tool_call_id": "c2"}, user("and?")]
PROMPTS: dict[str, list[dict[str, Any]]] = {
    "talk": TALK,
    "unanswered": [user("hi")],
    "only results": [SYSTEM, user("hi"), GAP, RESULT, {**RESULT, "tool_call_id": "c2"}],
    "system parts": [SYSTEM, user("hi")],
    "two systems": [{"role": "system", "content": "One."}, SYSTEM, user("hi")],
    "empty system": [{"role": "system", "content": ""}, user("hi")],
    "empty system part": [{"role": "system", "content": [{**TEXT, "text": ""}, TEXT]}, user("hi")],
    "users": [user("a"), user("b"), {"role": "user", "content": [TEXT, TEXT]}],
    "assistants": [
        user("a"),
        {"role": "assistant", "content": "b"},
        {"role": "assistant", "content": [TEXT, {**TEXT, "text": " "}]},
        user("c"),
    ],
    "empty texts": [
        user(" "),
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        {**RESULT, "content": ""},
        {"role": "user", "content": [{**TEXT, "text": "\n"}, TEXT]},
    ],
    "nothing said": [user("a"), {"role": "assistant", "content": None}, user("b")],
    "said last": [user("a"), GAP, *LATER, {"role": "assistant", "content": "so \n "}],
    "same call twice": [user("a"), GAP, {**GAP, "content": "again "}, RESULT, *LATER],
    "same call in one": [user("a"), {**GAP, "tool_calls": [CALL, CALL]}, RESULT],
    "images": [SYSTEM, {"role": "user", "content": [TEXT, IMAGE, LINK]}, GAP, SEEN, *LATER],
    "image last": [user("hi"), GAP, *LATER[:1], SEEN],
    "image alone": [{"role": "user", "content": [IMAGE]}],
    "image as text": [{"role": "user", "content": [{"type": "image_url", "image_url": PNG}]}],
    "thinking": [user("hi"), THINKING, RESULT, *LATER],
    "thinking in a loop": [user("hi"), THINKING, RESULT, LATER[0]],
    "unsigned thinking": [
        user("hi"),
        {**GAP, "thinking_blocks": [{**THOUGHT, "signature": ""}, REDACTED]},
        RESULT,
    ],
    "foreign thinking": [
        user("hi"),
        {**GAP, "thinking_blocks": [{**THOUGHT, "signature": "litellm_encrypted_reasoning:x"}]},
        RESULT,
    ],
    "said with thoughts": [
        user("hi"),
        {"role": "assistant", "content": "so", "thinking_blocks": [THOUGHT]},
        user("and?"),
    ],
    "ids of others": [
        user("hi"),
        BAD_ID,
        {**RESULT, "tool_call_id": "functions.look:0"},
        {**GAP, "tool_calls": [SIGNED, {**CALL, "id": "c9"}]},
        {**RESULT, "tool_call_id": SIGNED["id"]},
    ],
    "no arguments": [
        user("hi"),
        {**GAP, "tool_calls": [{**CALL, "function": {"name": "look", "arguments": ""}}]},
        RESULT,
    ],
    "odd text": [user('\x00 \x7f "\\ \u2028 wörld 🦀')],
    "own marks": [{"role": "user", "content": [{**TEXT, "cache_control": {"type": "ephemeral"}}]}],
}
ODD_TOOL = {
    "type": "function",
    "function": {
        "name": "odd",
        "parameters": {
            "title": "Odd",
            "properties": {"a": {"$ref": "#/$defs/A"}},
            "$defs": {"A": {}},
        },
    },
}
BARE_TOOL = {"type": "function", "function": {"name": "bare", "description": ""}}
NAMES = [
    "anthropic/claude-sonnet-4-5",
    "anthropic/claude-opus-4-6",
    "anthropic/claude-opus-5",
    "anthropic/some-model",
]
SETTINGS: list[dict[str, Any]] = [
    {},
    {"temperature": 1, "max_output_tokens": 99, "reasoning_effort": "low"},
    {"reasoning_effort": "high", "prompt_caching": False},
    {"vision": False, "reasoning_effort": "none"},
    {"vision": True, "reasoning_effort": "minimal", "prompt_caching": True},
    {"reasoning_effort": "medium", "timeout": 99},
]
QUICK_PAIRS = list(zip(cycle(NAMES), SETTINGS, strict=False))
PAIRS = [
    pytest.param(*pair, marks=() if pair in QUICK_PAIRS else pytest.mark.long)
    for pair in product(NAMES, SETTINGS)
]
SENT_HEADERS = ("x-api-key", "content-type", "accept", "idempotency-key", "anthropic-version")


async def sent(model: Model, server: Fixed, request: Request) -> tuple[dict[str, str], Any]:
    server.requests.clear()
    await model.complete(request, lambda _: None)
    ((headers, body),) = server.requests
    return headers, json.loads(body)


def fixed() -> Fixed:
    return Fixed(said("ok"), "text/event-stream")


@pytest.mark.long
@pytest.mark.parametrize(("name", "settings"), PAIRS, ids=str)
async def test_both_ways_send_the_same_request(
    litellm: LiteLLM, anthropic: Anthropic, name: str, settings: dict[str, Any]
) -> None:
    server = fixed()
    async with server.spec(name, **settings) as spec:
        for prompt, messages in PROMPTS.items():
            for tools, stop in (((), ()), ((*TOOLS, ODD_TOOL, BARE_TOOL), ("a", " "))):
                request = Request(
                    spec, messages, tools, stop=stop, purpose="ask", number=3, key="c/7"
                )
                assert await anthropic.serves(request), prompt
                headers, body = await sent(anthropic, server, request)
                again = await sent(anthropic, server, request)
                expected_headers, expected = await sent(litellm, server, request)
                assert body == again[1] == expected, prompt
                own = [each for each in expected_headers if each.startswith("x-perdure-")]
                for header in (*SENT_HEADERS, *own):
                    assert headers[header] == expected_headers[header]
                assert not [each for each in {*headers, *expected_headers} if "beta" in each]


def listed_names() -> list[str]:
    prices = price_table.load_prices().items()
    return [name for name, entry in prices if entry.get("litellm_provider") == "anthropic"]


@pytest.mark.long
@pytest.mark.parametrize("temperature", [None, 0.5])
@pytest.mark.parametrize("effort", [None, "low"])
async def test_every_listed_model_is_sent_the_same_request(
    litellm: LiteLLM, anthropic: Anthropic, temperature: float | None, effort: Any
) -> None:
    server, served = fixed(), set()
    for name in listed_names():
        fields: dict[str, Any] = {"temperature": temperature, "reasoning_effort": effort}
        async with server.spec(f"anthropic/{name}", **fields) as spec:
            request = Request(spec, [SYSTEM, user("hi"), THINKING, RESULT, *LATER], TOOLS)
            if await anthropic.serves(request):
                served.add(name)
                _, body = await sent(anthropic, server, request)
                assert body == (await sent(litellm, server, request))[1], name
    assert {"claude-sonnet-4-5", "claude-opus-4-6", "claude-haiku-4-5"} <= served
    assert temperature is not None or len(served) > 20


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
PARTS = st.lists(
    st.one_of(TEXTS.map(lambda text: {**TEXT, "text": text}), st.sampled_from([IMAGE, LINK])),
    min_size=1,
    max_size=3,
)
CALLS = st.lists(
    st.builds(
        lambda number, inputs: {
            "id": f"c{number}",
            "type": "function",
            "function": {"name": "look", "arguments": json.dumps(inputs)},
        },
        st.integers(0, 4),
        st.dictionaries(TEXTS, st.one_of(TEXTS, st.integers(), st.none()), max_size=2),
    ),
    min_size=1,
    max_size=3,
)
MESSAGES = st.one_of(
    st.builds(lambda content: {"role": "user", "content": content}, TEXTS | PARTS),
    st.builds(
        lambda number, content: {
            "role": "tool",
            "tool_call_id": f"c{number}",
            "name": "look",
            "content": content,
        },
        st.integers(0, 4),
        TEXTS | PARTS,
    ),
    st.builds(
        lambda content, calls, thoughts: {
            "role": "assistant",
            "content": content,
            **({"tool_calls": calls} if calls else {}),
            **({"thinking_blocks": thoughts} if thoughts else {}),
        },
        st.none() | TEXTS,
        st.none() | CALLS,
        st.lists(st.sampled_from([THOUGHT, REDACTED, {**THOUGHT, "signature": ""}]), max_size=2),
    ),
)


@pytest.mark.long
@pytest.mark.parametrize("caching", [True, False])
async def test_any_conversation_is_sent_as_litellm_sends_it(
    litellm: LiteLLM, anthropic: Anthropic, caching: bool
) -> None:
    server, loop = fixed(), asyncio.get_running_loop()
    async with server.spec(NAMES[0], prompt_caching=caching, reasoning_effort="low") as spec:

        async def compare(messages: list[Any], tools: list[Any]) -> None:
            request = Request(spec, [user("first"), *messages], tools)
            assert await anthropic.serves(request)
            _, body = await sent(anthropic, server, request)
            assert body == (await sent(litellm, server, request))[1]

        @calm
        @given(st.lists(MESSAGES, max_size=6), st.sampled_from([[], TOOLS]))
        def compare_all(messages: list[Any], tools: list[Any]) -> None:
            asyncio.run_coroutine_threadsafe(compare(messages, tools), loop).result(60)

        await asyncio.to_thread(compare_all)


async def test_a_growing_conversation_is_sent_whole_each_time(anthropic: Anthropic) -> None:
    server = fixed()
    messages: list[dict[str, Any]] = []
    async with server.spec(NAMES[0]) as spec:
        for number in range(12):
            messages.append(user(f"message {number}"))
            messages.append({"role": "assistant", "content": f"answer {number}"})
            _, body = await sent(anthropic, server, Request(spec, messages[:-1]))
            texts = [part["text"] for each in body["messages"] for part in each["content"]]
            assert texts == [each["content"] for each in messages[:-1]]
            marked = [
                part for each in body["messages"] for part in each["content"] if len(part) > 2
            ]
            assert [part["text"] for part in marked] == [f"message {number}"]


async def test_a_text_that_has_no_utf8_is_sent_with_a_mark(anthropic: Anthropic) -> None:
    server = fixed()
    async with server.spec(NAMES[0]) as spec:
        _, body = await sent(anthropic, server, Request(spec, [user("a \udc80 b")]))
    assert body["messages"][0]["content"][0]["text"] == "a ? b"


@pytest.mark.parametrize(
    ("message", "serves"),
    [
        ({"role": "user", "content": "hi"}, True),
        ({"role": "user", "content": [IMAGE]}, True),
        (
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://a"}}]},
            False,
        ),
        ({"role": "user", "content": [{**IMAGE, "image_url": {"url": PNG, "format": "a"}}]}, False),
        ({"role": "user", "content": [{"type": "file", "file": {}}]}, False),
        (
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:a"}}]},
            False,
        ),
        ({"role": "user"}, False),
        ({"role": "system", "content": "later"}, False),
        ({"role": "function", "name": "f", "content": "."}, False),
        ({"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}}, False),
        ({"role": "assistant", "content": [{"type": "thinking", "thinking": "h"}]}, False),
        (
            {"role": "assistant", "tool_calls": [{**CALL, "function": {"arguments": '{"a'}}]},
            False,
        ),
        ({"role": "assistant", "tool_calls": [{**CALL, "id": "srvtoolu_1"}]}, False),
        ({"role": "tool", "tool_call_id": "c1", "content": [{"type": "file"}]}, False),
        ({"role": "tool", "content": "."}, False),
    ],
    ids=str,
)
async def test_messages_that_litellm_treats_in_its_way_are_left_to_it(
    anthropic: Anthropic, message: dict[str, Any], serves: bool
) -> None:
    spec = ModelSpec(name=NAMES[0])
    assert await anthropic.serves(Request(spec, [user("hi"), message])) is serves


async def test_a_prompt_without_a_user_is_left_to_litellm(anthropic: Anthropic) -> None:
    assert not await anthropic.serves(Request(ModelSpec(name=NAMES[0]), [SYSTEM]))


@pytest.mark.parametrize(
    ("change", "serves"),
    [
        ({"name": "look_2-b"}, True),
        ({"name": "server/look"}, False),
        ({"name": "x" * 129}, False),
        ({"parameters": {"type": "object", "definitions": {"A": {}}}}, False),
        ({"parameters": {"type": "object", "properties": {"a": {"pattern": r"\p{L}"}}}}, False),
        ({"parameters": {"type": "object", "properties": {"a": {"pattern": "^x"}}}}, True),
        ({"defer_loading": True}, False),
        ({"strict": True}, True),
    ],
    ids=str,
)
async def test_tools_that_litellm_rewrites_are_left_to_it(
    anthropic: Anthropic, change: dict[str, Any], serves: bool
) -> None:
    tool: dict[str, Any] = TOOLS[0]
    changed = {**tool, "function": {**tool["function"], **change}}
    request = Request(ModelSpec(name=NAMES[0]), [user("hi")], [tool, changed])
    assert await anthropic.serves(request) is serves


NO_KEYS = dict.fromkeys(("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"))


@pytest.mark.parametrize(
    ("variables", "header", "value"),
    [
        ({}, "x-api-key", PLACEHOLDER_KEY),
        ({"ANTHROPIC_API_KEY": " the-key-of-this-test "}, "x-api-key", "the-key-of-this-test"),
        ({"ANTHROPIC_AUTH_TOKEN": "a-token"}, "authorization", "Bearer a-token"),
        ({"ANTHROPIC_AUTH_TOKEN": "a-token", "ANTHROPIC_API_KEY": "a-key"}, "x-api-key", "a-key"),
    ],
)
async def test_the_key_is_that_of_the_environment(
    anthropic_way: Way, variables: dict[str, str], header: str, value: str
) -> None:
    server = fixed()
    with environment(**{**NO_KEYS, **variables}):
        async with server.spec(NAMES[0]) as spec:
            headers, _ = await sent(anthropic_way.model, server, Request(spec, TALK))
    assert headers[header] == value
    other = {"x-api-key": "authorization", "authorization": "x-api-key"}[header]
    assert other not in headers


async def test_a_request_leaves_its_messages_and_tools_unchanged(anthropic_way: Way) -> None:
    server = fixed()
    async with server.spec(NAMES[0], reasoning_effort="low") as spec:
        for messages in PROMPTS.values():
            before = copy.deepcopy((messages, TOOLS))
            await anthropic_way.model.complete(Request(spec, messages, TOOLS), lambda _: None)
            assert (messages, TOOLS) == before


async def test_of_metadata_anthropic_is_told_the_user_alone(
    litellm: LiteLLM, anthropic: Anthropic
) -> None:
    server, metadata = fixed(), {"team": "blue", "user_id": "u-7"}
    async with server.spec(NAMES[0]) as spec:
        for given, expected in ((metadata, {"user_id": "u-7"}), ({"team": "blue"}, None)):
            request = Request(spec, [user("hi")], metadata=given)
            _, body = await sent(anthropic, server, request)
            assert body == (await sent(litellm, server, request))[1]
            assert body.get("metadata") == expected
