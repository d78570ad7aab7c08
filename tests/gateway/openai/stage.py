"""A gateway with agents, and OpenAI's own client for its users."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from openai import AsyncOpenAI

from perdure.storage.credentials.api_keys import create_api_key
from tests.gateway.stage import GatewayStage, as_json, open_gateway
from tests.harness import ConversationHarness, text_answer, tool_call_answer

WORDS = "one two three four five six seven eight nine ten eleven twelve"

ADD = ("add", {"a": 2, "b": 3})

USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "cached_tokens": 2}

ANSWERS: dict[str, list[dict[str, Any]]] = {
    "adder": [
        tool_call_answer(ADD, content="I add.", reasoning_content="Two numbers."),
        {"content": "It is 5.", "usage": USAGE},
        *(text_answer(f"Answer {number}.") for number in range(2, 9)),
    ],
    "speaker": [{"content": WORDS, "chunk_delay": 0.1}, *[text_answer("Bye.")] * 5],
    "sleeper": [{"content": WORDS, "chunk_delay": 60}, text_answer("Awake.")],
    "asker": [tool_call_answer(ADD, ("add", {"a": 1, "b": 1})), *[text_answer("Done.")] * 3],
    "broken": [{"content": "Never.", "failures": [{"status": 401}] * 9}] * 3,
}


@dataclass
class OpenAiStage:
    """A gateway, and OpenAI's client for two users of it, which asks once."""

    gateway: GatewayStage
    anna: AsyncOpenAI
    ben: AsyncOpenAI


async def make_client(stage: GatewayStage, user_id: str, **options: Any) -> AsyncOpenAI:
    """Return OpenAI's client for a user of a gateway, with a new key."""
    key = await create_api_key(stage.gateway.store, user_id, "openai")
    return AsyncOpenAI(base_url=f"{stage.url}/openai/v1", api_key=key.secret, **options)


@asynccontextmanager
async def open_stage(harness: ConversationHarness, **more: Any) -> AsyncIterator[OpenAiStage]:
    """Serve a gateway whose agents give these answers, and a worker for them."""
    asks = {"asker": {"confirmation": {"policy": "always"}}}
    agents = {
        name: as_json(harness.spec(*answers, **asks.get(name, {})))
        for name, answers in ANSWERS.items()
    }
    settings: dict[str, Any] = {"gateway_max_concurrent_conversations": 0, "agents": agents}
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(harness.worker())
        stage = await stack.enter_async_context(open_gateway(harness, **settings, **more))
        clients = [await make_client(stage, name, max_retries=0) for name in ("anna", "ben")]
        for client in clients:
            await stack.enter_async_context(client)
        yield OpenAiStage(stage, *clients)
