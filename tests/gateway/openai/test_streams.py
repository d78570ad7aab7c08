"""Streams that nothing comes over for a while."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from perdure.gateway.openai.streams import encode_event
from perdure.gateway.turn_streams import encode_data, keep_alive


async def collect(*valid: bool, checks: int) -> list[dict[str, Any] | None]:
    """Collect a stream whose second event comes after so many looks at its credential."""
    answers, looks = iter(valid), 0
    reached = asyncio.Event()

    async def is_valid() -> bool:
        nonlocal looks
        looks += 1
        if looks == checks:
            reached.set()
        return next(answers)

    async def wait_between() -> AsyncGenerator[dict[str, Any], None]:
        yield {"n": 1}
        await reached.wait()
        yield {"n": 2}

    return [event async for event in keep_alive(wait_between(), is_valid, seconds=0.03)]


async def test_a_stream_is_kept_alive_between_its_events() -> None:
    found = await collect(*[True] * 100, checks=2)
    assert [event for event in found if event is not None] == [{"n": 1}, {"n": 2}]
    assert found[1] is None


async def test_a_stream_ends_with_the_credential_that_has_opened_it() -> None:
    assert await collect(True, False, checks=3) == [{"n": 1}, None]


def test_events_are_called_as_their_types() -> None:
    event = {"type": "response.created", "text": "ö\n"}
    assert encode_event(event).decode() == (
        'event: response.created\ndata: {"type":"response.created","text":"ö\\n"}\n\n'
    )
    assert encode_data({}) == b"data: {}\n\n"
