"""The feed of a user."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable

import httpx
import pytest

from perdure.api.frames import FeedFrame, StatusFrame
from reliability.following.http_clients import watching_by_socket
from tests.gateway.stage import GatewayStage, as_json
from tests.harness import text_answer

pytestmark = pytest.mark.long


async def feed_frames(client: httpx.AsyncClient) -> AsyncIterator[FeedFrame]:
    async with client.stream("GET", "/v1/feed", timeout=None) as response:
        assert response.status_code == 200
        async for line in response.aiter_lines():
            if line.startswith("data: "):
                yield FeedFrame.model_validate_json(line.removeprefix("data: "))


async def wait_for_frame(
    frames: AsyncIterator[FeedFrame], accept: Callable[[FeedFrame], bool]
) -> list[FeedFrame]:
    """Return the frames up to the first one that is accepted."""
    seen: list[FeedFrame] = []
    async with asyncio.timeout(60):
        async for frame in frames:
            seen.append(frame)
            if accept(frame):
                return seen
    raise AssertionError("the feed has ended")


def has_status(conversation_id: str, status: str) -> Callable[[FeedFrame], bool]:
    def accept(frame: FeedFrame) -> bool:
        shown = frame.frame
        is_due = isinstance(shown, StatusFrame) and shown.status.status == status
        return is_due and frame.conversation_id == conversation_id

    return accept


async def test_a_feed_has_the_statuses_of_conversations_that_nobody_watches(
    stage: GatewayStage,
) -> None:
    mine, other = feed_frames(stage.anna), feed_frames(stage.ben)
    waiting = asyncio.ensure_future(anext(other))
    conversation_id = str(uuid.uuid4())
    first = asyncio.ensure_future(wait_for_frame(mine, has_status(conversation_id, "finished")))
    await asyncio.sleep(0.2)
    agent = as_json(stage.harness.spec(text_answer("Hello."), text_answer("Bye.")))
    started = {"text": "Hi.", "agent": agent, "conversation_id": conversation_id}
    await stage.anna.post("/v1/conversations", json=started)
    await first
    path = f"/v1/conversations/{conversation_id}"
    await stage.anna.post(f"{path}/messages", json={"text": "And?"})
    seen = await wait_for_frame(mine, has_status(conversation_id, "finished"))
    end = (await stage.anna.get(f"{path}/events")).json()["end_seq"]
    assert isinstance(seen[-1].frame, StatusFrame)
    assert seen[-1].frame.status.next_seq == end
    assert not waiting.done()
    waiting.cancel()


async def test_a_feed_tells_of_conversations_that_are_watched_at_once(
    stage: GatewayStage,
) -> None:
    slow = {"content": "one two three four five six", "chunk_delay": 0.2}
    conversation_id = await stage.start(text_answer("Hello."), slow)
    await stage.wait_until(conversation_id, "finished")
    frames = feed_frames(stage.anna)
    async with watching_by_socket(stage.anna, conversation_id) as watcher:
        waiting = asyncio.ensure_future(
            wait_for_frame(frames, has_status(conversation_id, "running"))
        )
        await asyncio.sleep(0.2)
        await stage.anna.post(
            f"/v1/conversations/{conversation_id}/messages", json={"text": "And?"}
        )
        await waiting
        await wait_for_frame(frames, has_status(conversation_id, "finished"))
    assert watcher.status.status == "finished"


async def test_a_feed_tells_of_conversations_that_leave_the_list(stage: GatewayStage) -> None:
    conversation_id = await stage.start(text_answer("Hello."))
    await stage.wait_until(conversation_id, "finished")
    frames = feed_frames(stage.anna)
    waiting = asyncio.ensure_future(wait_for_frame(frames, lambda frame: frame.removed))
    await asyncio.sleep(0.2)
    assert (await stage.anna.delete(f"/v1/conversations/{conversation_id}")).is_success
    assert (await waiting)[-1].conversation_id == conversation_id
