"""A gateway that is lost in mid-stream, and the client's retry at another one."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from openai import APIError, AsyncOpenAI

from perdure.gateway.gateway import Gateway
from perdure.settings.settings import Settings
from perdure.storage.credentials.api_keys import create_api_key
from tests.gateway.openai.stage import WORDS, OpenAiStage
from tests.gateway.stage import serve_gateway

pytestmark = pytest.mark.long

ASK: dict[str, Any] = {"model": "speaker", "input": "Will you be lost?", "stream": True}
RETRY = {"x-stainless-retry-count": "1"}


@asynccontextmanager
async def another_gateway(stage: OpenAiStage) -> AsyncIterator[AsyncOpenAI]:
    """Serve another gateway over the same servers while inside; yield a client of Anna's."""
    settings: Settings = stage.gateway.gateway.settings
    key = (await create_api_key(stage.gateway.gateway.store, "anna", "lost")).secret
    async with serve_gateway(Gateway(stage.gateway.harness.client, settings)) as url:
        client = AsyncOpenAI(base_url=f"{url}/openai/v1", api_key=key, max_retries=0)
        yield client


async def test_a_retry_at_another_gateway_joins_the_turn(openai_stage: OpenAiStage) -> None:
    async with another_gateway(openai_stage) as client:
        stream = await client.responses.create(**ASK)
        events = aiter(stream)
        begun = [await anext(events) for _ in range(5)]
    with pytest.raises((APIError, httpx.HTTPError)):
        [event async for event in events]
    await client.close()
    again = await openai_stage.anna.responses.create(**ASK, extra_headers=RETRY)
    replayed = [event async for event in again]
    assert replayed[:5] == begun
    assert replayed[-1].type == "response.completed"
    assert replayed[-1].response.output_text == WORDS


async def test_a_stream_goes_on_at_another_gateway_from_the_number_that_was_seen(
    openai_stage: OpenAiStage,
) -> None:
    async with another_gateway(openai_stage) as client:
        stream = await client.responses.create(**{**ASK, "input": "On?", "background": True})
        events = aiter(stream)
        seen = [await anext(events) for _ in range(6)]
        await stream.close()
        await client.close()
    name = seen[0].response.id
    rest = await openai_stage.anna.responses.retrieve(
        name, stream=True, starting_after=seen[-1].sequence_number
    )
    together = [*seen, *[event async for event in rest]]
    whole = await openai_stage.anna.responses.retrieve(name, stream=True)
    assert together == [event async for event in whole]
    assert "".join(getattr(event, "delta", "") for event in together) == WORDS
