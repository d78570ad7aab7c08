"""Clients that do not read as fast as frames come."""

import asyncio
import json
import os
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from websockets.exceptions import ConnectionClosed

from perdure.api.frames import ErrorFrame, Frame, NoticeFrame
from perdure.gateway.following.followers import Followers
from perdure.gateway.following.settings import FollowingLimits
from reliability.following.http_clients import open_socket, watching_by_socket
from reliability.following.watcher import wait_for_status
from tests.gateway.stage import GatewayStage, open_gateway
from tests.harness import ConversationHarness, text_answer

pytestmark = pytest.mark.long


def big_notice() -> NoticeFrame:
    """Return a notice of 100 kB that cannot be compressed to a few bytes."""
    return NoticeFrame(type="info", id="STATUS$TEST", message=os.urandom(50_000).hex())


@pytest_asyncio.fixture
async def stage(harness: ConversationHarness) -> AsyncIterator[GatewayStage]:
    """A gateway that gives a client one second to take a frame."""
    async with harness.worker(), open_gateway(harness) as opened:
        limits = FollowingLimits(buffered_frames=500, send_timeout=1.0)
        opened.gateway.followers = Followers(harness.client, limits)
        yield opened


async def test_a_client_that_is_too_far_behind_is_cut_off(harness: ConversationHarness) -> None:
    followers = Followers(harness.client, FollowingLimits(buffered_frames=20))
    async with harness.worker():
        conversation = await harness.client.start("Hi.", harness.spec(text_answer("Hello.")))
        end = (await conversation.wait_for_turn()).next_seq
        frames = followers.follow("local", conversation.id, after_seq=end - 1)
        live = asyncio.ensure_future(read_until_notice(frames))
        while not live.done():
            followers.notify("local", conversation.id, big_notice())
            await asyncio.sleep(0.05)
        for _ in range(30):
            followers.notify("local", conversation.id, big_notice())
        left = [frame async for frame in frames]
        await followers.close()
    assert isinstance(left[-1], ErrorFrame)
    assert left[-1].code == "slow_reader"
    assert len(left) < 20


async def read_until_notice(frames: AsyncIterator[Frame]) -> None:
    async for frame in frames:
        if frame.kind == "notice":
            return


async def test_others_do_not_wait_for_a_socket_that_is_not_read(stage: GatewayStage) -> None:
    conversation_id = await stage.start(text_answer("Hello."))
    await stage.wait_until(conversation_id, "finished")
    followers = stage.gateway.followers
    async with (
        watching_by_socket(stage.anna, conversation_id) as watcher,
        open_socket(stage.anna, conversation_id, max_queue=1) as slow,
    ):
        await wait_for_status(watcher, "finished")
        for count in range(300):
            followers.notify("anna", conversation_id, big_notice())
            async with asyncio.timeout(10):
                while len(watcher.notices) <= count:
                    await asyncio.sleep(0.001)
        await asyncio.sleep(2.5)
        try:
            received = [json.loads(message)["kind"] async for message in slow]
        except ConnectionClosed:
            received = []
    assert len(watcher.notices) == 300
    assert received.count("notice") < 300


async def test_a_stream_that_is_not_read_is_ended(stage: GatewayStage) -> None:
    conversation_id = await stage.start(text_answer("Hello."))
    await stage.wait_until(conversation_id, "finished")
    followers = stage.gateway.followers
    path = f"/v1/conversations/{conversation_id}/stream"
    async with (
        watching_by_socket(stage.anna, conversation_id) as watcher,
        stage.anna.stream("GET", path) as unread,
    ):
        await wait_for_status(watcher, "finished")
        for count in range(300):
            followers.notify("anna", conversation_id, big_notice())
            async with asyncio.timeout(10):
                while len(watcher.notices) <= count:
                    await asyncio.sleep(0.001)
        async with asyncio.timeout(30):
            while followers.count_clients("anna", conversation_id) > 1:
                await asyncio.sleep(0.05)
        assert unread.status_code == 200
    assert len(watcher.notices) == 300
