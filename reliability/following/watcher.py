"""A client that follows a conversation, and checks what it gets as it goes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from perdure.agent.loop.start import ConversationStatus
from perdure.api.frames import (
    DeltaFrame,
    DurableFrame,
    ErrorFrame,
    Frame,
    ItemAbortedFrame,
    NoticeFrame,
    StatusFrame,
    SyncFrame,
)
from perdure.gateway.following.followers import Followers


@dataclass
class Watcher:
    """The frames that a client has received, which began after slot `after_seq`."""

    after_seq: int = -1
    frames: list[Frame] = field(default_factory=list)
    entries: dict[int, dict[str, Any]] = field(default_factory=dict)
    texts: dict[str, tuple[int, str]] = field(default_factory=dict)
    """The attempt and the text so far of each item at work."""
    steps: dict[str, str] = field(default_factory=dict)
    """The kind of the step of each item that was ever at work."""
    parts: dict[str, int] = field(default_factory=dict)
    """The order of the newest part of each item at work."""
    finished_texts: list[tuple[str, str]] = field(default_factory=list)
    """The last text of each answer of the model, and the text of its event."""
    statuses: list[ConversationStatus] = field(default_factory=list)
    notices: list[NoticeFrame] = field(default_factory=list)
    error: ErrorFrame | None = None

    @property
    def next_seq(self) -> int:
        return self.after_seq + 1 + len(self.entries)

    @property
    def status(self) -> ConversationStatus:
        return self.statuses[-1]

    def take(self, frame: Frame) -> None:
        """Take a frame. Raises AssertionError where it is not one that may come now."""
        self.frames.append(frame)
        match frame:
            case SyncFrame():
                assert frame.from_seq == self.next_seq
                self.texts.clear()
                self.parts.clear()
            case DurableFrame():
                assert frame.seq == self.next_seq, f"{frame.seq} came, {self.next_seq} was due"
                self.entries[frame.seq] = frame.entry
                self._settle(frame.entry)
            case DeltaFrame():
                self._grow(frame)
            case ItemAbortedFrame():
                assert frame.item_id in self.texts
                self._drop(frame.item_id)
            case StatusFrame():
                self.statuses.append(frame.status)
            case NoticeFrame():
                self.notices.append(frame)
            case ErrorFrame():
                self.error = frame

    def _grow(self, part: DeltaFrame) -> None:
        attempt, text = self.texts.get(part.item_id, (part.attempt, ""))
        order = self.parts.get(part.item_id)
        assert part.attempt >= attempt, "a lower attempt does not come back"
        if part.attempt > attempt:
            text, order = "", None
            assert part.order == 0
        assert order is None or part.order == order + 1, f"part {part.order} came after {order}"
        self.steps[part.item_id] = part.step
        self.texts[part.item_id] = (part.attempt, text[: part.offset] + part.text)
        self.parts[part.item_id] = part.order

    def _settle(self, entry: dict[str, Any]) -> None:
        item_id = entry["origin"]["activity"].partition(" ")[0]
        if item_id in self.texts:
            if (whole := _text_of(entry)) and self.steps[item_id] == "llm.chat":
                self.finished_texts.append((self.texts[item_id][1], whole))
            self._drop(item_id)

    def _drop(self, item_id: str) -> None:
        del self.texts[item_id]
        del self.parts[item_id]


def _text_of(entry: dict[str, Any]) -> str:
    content = entry.get("thought") or entry.get("llm_message", {}).get("content", [])
    return "".join(part.get("text", "") for part in content)


@asynccontextmanager
async def watching(
    followers: Followers, user_id: str, conversation_id: str, after_seq: int = -1, **more: Any
) -> AsyncIterator[Watcher]:
    """Follow a conversation by the library while inside."""
    watcher = Watcher(after_seq)

    async def watch() -> None:
        frames = followers.follow(user_id, conversation_id, after_seq=after_seq, **more)
        async with aclosing(frames):
            async for frame in frames:
                watcher.take(frame)

    task = asyncio.create_task(watch())
    try:
        yield watcher
    finally:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.result()


async def wait_for_status(watcher: Watcher, *statuses: str, after: int = -1) -> None:
    """Wait until the newest status is one of these, with more slots than `after`."""
    async with asyncio.timeout(60):
        while not (
            watcher.statuses
            and watcher.status.status in statuses
            and watcher.status.next_seq > after
            and watcher.next_seq >= watcher.status.next_seq
        ):
            await asyncio.sleep(0.02)
