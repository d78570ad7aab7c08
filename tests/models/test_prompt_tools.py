"""Models without tool calling, in process and over HTTP."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio

from perdure.agent.calls.completion import Completion
from perdure.agent.spec import ModelSpec
from perdure.models.litellm.client import LiteLLM
from perdure.models.model import Model, Request
from perdure.models.prompt_tool_parser import format_call
from perdure.testing.script import Script, ScriptedAnswer
from perdure.testing.scripted_model import ScriptedModel
from perdure.testing.server import serve_scripts
from tests.models.requests import text_in, to_message, user

pytestmark = [
    pytest.mark.filterwarnings("ignore:Item .* is using the `ReadOnly` qualifier"),
    pytest.mark.filterwarnings("ignore:Accessing the 'model_(computed_)?fields' attribute"),
]

LOOK = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Look around.",
        "parameters": {
            "type": "object",
            "properties": {"at": {"type": "string"}, "far": {"type": "boolean"}},
            "required": ["at"],
        },
    },
}
SCRIPT = Script(
    name="words",
    answers=(
        ScriptedAnswer(
            content="I look first.\n\n<function=look>\n<parameter=at>it</parameter>\n"
            "<parameter=far>true</parameter>\n",
            chunk_delay=1e-9,
        ),
        ScriptedAnswer(content="Write <function= to call.", chunk_delay=1e-9),
        ScriptedAnswer(content="<function=look>\n<parameter=at>i", finish_reason="length"),
    ),
)
SYSTEM = {"role": "system", "content": [{"type": "text", "text": part} for part in ("Be.", "Now.")]}


@pytest_asyncio.fixture(scope="module")
async def url() -> AsyncIterator[str]:
    async with serve_scripts({"words": SCRIPT}) as url:
        yield url


@pytest.fixture(params=["in process", "over HTTP"])
def model_and_spec(
    request: pytest.FixtureRequest, url: str, litellm: LiteLLM
) -> tuple[Model, ModelSpec]:
    if request.param == "in process":
        return ScriptedModel(SCRIPT), ModelSpec(name="scripted:words", native_tool_calling=False)
    return litellm, ModelSpec(name="openai/words", api_base=url, native_tool_calling=False)


async def test_a_call_in_the_text_becomes_a_tool_call(
    model_and_spec: tuple[Model, ModelSpec],
) -> None:
    model, spec = model_and_spec
    texts: list[str] = []
    first = await model.complete(Request(spec, [user("go")], [LOOK]), texts.append)
    (call,) = first.message.tool_calls or ()
    assert (text_in(first), first.finish_reason) == ("I look first.", "tool_calls")
    assert (call.name, json.loads(call.arguments)) == ("look", {"at": "it", "far": True})
    assert texts == ["I", "I look", "I look first."]
    history = [user("go"), *answered(first)]
    second = await model.complete(Request(spec, history, [LOOK]), texts.append)
    assert (text_in(second), second.message.tool_calls) == ("Write <function= to call.", None)
    assert texts[-1] == text_in(second), "what only looked like a call is shown in the end"


async def test_an_unfinished_call_cannot_be_executed(
    model_and_spec: tuple[Model, ModelSpec],
) -> None:
    model, spec = model_and_spec
    messages = [user("go"), *({"role": "assistant", "content": "x"} for _ in range(2))]
    answer = await model.complete(Request(spec, messages, [LOOK]), lambda _: None)
    (call,) = answer.message.tool_calls or ()
    assert call.name == "look"
    with pytest.raises(ValueError, match="Expecting value"):
        json.loads(call.arguments)


def answered(completion: Completion) -> list[dict[str, Any]]:
    (call,) = completion.message.tool_calls or ()
    return [
        to_message(completion),
        {"role": "tool", "tool_call_id": call.id, "name": call.name, "content": "seen"},
    ]


async def test_the_prompt_describes_tools_calls_and_results_as_text(
    litellm: LiteLLM, url: str
) -> None:
    spec = ModelSpec(name="openai/words", api_base=url, native_tool_calling=False, vision=True)
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    batch = [
        {"id": f"c{nth}", "type": "function", "function": {"name": "look", "arguments": raw}}
        for nth, raw in enumerate(['{"at": "a"}', '{"at": "b"}'])
    ]
    history = [
        SYSTEM,
        user("go"),
        {"role": "assistant", "content": "Both.", "tool_calls": batch},
        {"role": "tool", "tool_call_id": "c0", "name": "look", "content": "A"},
        {"role": "tool", "tool_call_id": "c1", "name": "look", "content": [image]},
    ]
    await litellm.complete(Request(spec, history, [LOOK]), lambda _: None)
    body = await newest(url)
    assert "tools" not in body
    assert body["stop"] == ["</function"]
    system, *rest = body["messages"]
    assert system["content"].startswith("Be.\n\nYou can call the functions below.")
    assert "---- look ----\nLook around.\n- at (string, required)" in system["content"]
    assert system["content"].endswith("\nNow.")
    assert rest == [
        user("go"),
        {"role": "assistant", "content": "Both.\n\n" + format_call("look", '{"at": "a"}')},
        user("EXECUTION RESULT of [look]:\nA"),
        {"role": "assistant", "content": format_call("look", '{"at": "b"}')},
        {
            "role": "user",
            "content": [{"type": "text", "text": "EXECUTION RESULT of [look]:"}, image],
        },
    ]


async def test_a_prompt_without_tools_has_no_manual(litellm: LiteLLM, url: str) -> None:
    spec = ModelSpec(name="openai/words", api_base=url, native_tool_calling=False)
    answer = await litellm.complete(Request(spec, [user("go")]), lambda _: None)
    assert "<function=look>" in text_in(answer)
    body = await newest(url)
    assert (body["messages"], body.get("stop")) == ([user("go")], None)


async def newest(url: str) -> dict[str, Any]:
    async with httpx.AsyncClient() as client:
        requests = (await client.get(url.replace("/v1", "/requests"))).json()["requests"]
    body: dict[str, Any] = requests[-1]
    return body
