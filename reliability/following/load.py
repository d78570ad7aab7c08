"""Conversations whose messages go through gateways, followed by clients of three kinds."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field
from itertools import count

import httpx
from websockets.exceptions import WebSocketException

from perdure.api.frames import ErrorFrame, Frame
from perdure.client.conversation import Conversation
from perdure.client.ids import new_conversation_id
from perdure.errors import TimedOut, Unreachable
from perdure.storage.errors import StoreError
from reliability.chaos.load.conversations import make_agent
from reliability.following.http_clients import open_socket, receive_frames, stream_frames
from reliability.following.stage import Stage
from reliability.following.watcher import Watcher

KINDS = ("stream", "socket", "library")

TURN_TIMEOUT = 180.0
"""Seconds after which a turn counts as one that does not end; undisturbed it takes five."""

MESSAGES = 4
"""Messages of a conversation, each with a turn."""

RETRY_DELAY = (0.05, 0.5)
"""The least and the most seconds before a client tries again."""

FINAL_CODES = frozenset(
    {"not_found", "unauthorized", "forbidden", "invalid", "damaged", "internal"}
)
"""The codes of errors that nothing which is killed may bring about."""

LOST_CONNECTION = (httpx.TransportError, OSError, WebSocketException, Unreachable, StoreError)
"""The errors of a client whose gateway, or whose Temporal, was killed."""


@dataclass
class Load:
    """The counts and the findings of conversations with clients attached."""

    stage: Stage
    findings: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    async def run_lane(self, lane: int, seed: int, stop: asyncio.Event) -> None:
        """Run conversations one after the other, until it is time to stop."""
        for nth in count():
            if stop.is_set():
                return
            talk = FollowedConversation(self, random.Random(f"{seed} {lane} {nth}"))
            try:
                await talk.run()
                self.counts["conversations"] += 1
            except* Exception as errors:
                self.findings += [f"{talk.conversation.id}: {e!r}" for e in errors.exceptions]


class FollowedConversation:
    """A conversation, and a watcher of each kind, which connect again until it is over."""

    def __init__(self, load: Load, chance: random.Random) -> None:
        self.load = load
        self.stage = load.stage
        self.chance = chance
        self.conversation: Conversation = self.stage.client.conversation(new_conversation_id())
        self.watchers = {kind: Watcher() for kind in KINDS}
        self.message_ids: list[str] = []

    async def run(self) -> None:
        """Run all turns, and compare what each watcher got with the log."""
        model = self.chance.choice([f"following-{nth}" for nth in range(8)])
        agent = make_agent(model, self.stage.model)
        while True:
            try:
                await self.conversation.start("Begin.", agent, "first")
                break
            except Unreachable:
                await self._pause()
        async with asyncio.TaskGroup() as tasks:
            watching = [tasks.create_task(self._watch(kind)) for kind in KINDS]
            try:
                await self._wait_for_turn("first")
                for nth in range(1, MESSAGES):
                    await self._send(f"message-{nth}")
                    await self._wait_for_turn(f"message-{nth}")
                await self._check()
            finally:
                for task in watching:
                    task.cancel()

    async def _send(self, message_id: str) -> None:
        """Send a message through a gateway, again under the same id if there is no answer."""
        path = f"/v1/conversations/{self.conversation.id}/messages"
        body = {"text": "Go on.", "message_id": message_id}
        while True:
            try:
                async with self.stage.http_client(self.chance) as client:
                    response = await client.post(path, json=body)
                if response.status_code < 500:
                    response.raise_for_status()
                    self.load.counts["messages"] += 1
                    return
            except httpx.TransportError:
                pass
            self.load.counts["messages sent again"] += 1
            await self._pause()

    async def _wait_for_turn(self, message_id: str) -> None:
        """Wait until each watcher has seen the end of the turn of a message."""
        self.message_ids.append(message_id)
        async with asyncio.timeout(TURN_TIMEOUT):
            for watcher in self.watchers.values():
                while not self._has_ended(watcher, message_id):
                    await asyncio.sleep(0.05)
        self.load.counts["turns"] += 1

    def _has_ended(self, watcher: Watcher, message_id: str) -> bool:
        if not watcher.statuses or watcher.next_seq < watcher.status.next_seq:
            return False
        has_begun = any(e.get("message_id") == message_id for e in watcher.entries.values())
        return has_begun and watcher.status.status not in ("running", "idle")

    async def _check(self) -> None:
        log = self.conversation.log
        entries = await log.read(0, await log.end())
        ids = [entry.event.id for entry in entries]
        sent = [entry.event.model_dump().get("message_id") for entry in entries]
        told = [message_id for message_id in sent if message_id is not None]
        assert told == self.message_ids, f"the log has the messages {told}"
        for kind, watcher in self.watchers.items():
            got = [entry["id"] for entry in watcher.entries.values()]
            assert got == ids[: len(got)], f"{kind}: other events than the log's"
            assert len(ids) - len(got) <= 1, f"{kind}: {len(got)} of {len(ids)} events"
            for grown, whole in watcher.finished_texts:
                assert grown == whole, f"{kind}: {grown!r} grew, and {whole!r} was said"
            self.load.counts["events"] += len(got)
            self.load.counts["texts"] += len(watcher.finished_texts)
            self.load.counts["parts"] += sum(f.kind == "delta" for f in watcher.frames)

    async def _watch(self, kind: str) -> None:
        """Follow the conversation by connections of one kind, one after the other."""
        watcher = self.watchers[kind]
        while True:
            self.load.counts[f"{kind} connections"] += 1
            try:
                async with AsyncExitStack() as stack:
                    frames = await self._connect(kind, watcher.next_seq - 1, stack)
                    async for frame in frames:
                        watcher.take(frame)
                        self._check_error(kind, frame)
            except httpx.HTTPStatusError as error:
                status = error.response.status_code
                assert status >= 500, f"{kind}: {status}"
            except (*LOST_CONNECTION, TimedOut):
                pass
            await self._pause()

    async def _connect(
        self, kind: str, after_seq: int, stack: AsyncExitStack
    ) -> AsyncGenerator[Frame, None]:
        name = self.conversation.id
        if kind == "library":
            user_id = self.conversation.log.user_id
            frames = self.stage.followers.follow(user_id, name, after_seq=after_seq)
            return await stack.enter_async_context(aclosing(frames))
        client = await stack.enter_async_context(self.stage.http_client(self.chance))
        if kind == "stream":
            return await stack.enter_async_context(aclosing(stream_frames(client, name, after_seq)))
        socket = await stack.enter_async_context(open_socket(client, name, after_seq))
        return await stack.enter_async_context(aclosing(receive_frames(socket)))

    def _check_error(self, kind: str, frame: Frame) -> None:
        if isinstance(frame, ErrorFrame):
            self.load.counts[f"error {frame.code}"] += 1
            assert frame.code not in FINAL_CODES, f"{kind}: {frame.code}: {frame.detail}"

    async def _pause(self) -> None:
        await asyncio.sleep(self.chance.uniform(*RETRY_DELAY))
