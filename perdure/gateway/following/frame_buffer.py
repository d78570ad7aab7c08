"""The newest frames of a conversation, which all of its clients read at their own pace."""

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice

from perdure.gateway.following.ready_frame import ReadyFrame


class FellBehind(Exception):
    """A reader is further behind than the buffer reaches back."""


class FrameBuffer:
    """Frames by their number: `end` is that of the next one."""

    def __init__(self, max_frames: int, max_chars: int) -> None:
        self._max_frames = max_frames
        self._max_chars = max_chars
        self._frames: deque[ReadyFrame] = deque()
        self._chars = 0
        self._readers: list[Reader] = []
        self.end = 0

    @property
    def first(self) -> int:
        return self.end - len(self._frames)

    def publish(self, frames: Iterable[ReadyFrame]) -> None:
        """Append frames, and drop those that all readers have, or that are too many."""
        for frame in frames:
            self._frames.append(frame)
            self._chars += len(frame.text)
            self.end += 1
            while len(self._frames) > 1 and self._is_full():
                self._drop()
        for reader in self._readers:
            reader.wake.set()

    @contextmanager
    def read_from_end(self, wake: asyncio.Event) -> Iterator["Reader"]:
        """Register a reader of the frames that are published while inside; they set `wake`."""
        reader = Reader(self, self.end, wake)
        self._readers.append(reader)
        try:
            yield reader
        finally:
            self._readers.remove(reader)
            self._drop_read()

    def _take(self, first: int) -> list[ReadyFrame]:
        if first < self.first:
            raise FellBehind
        return list(islice(self._frames, first - self.first, None))

    def _drop_read(self) -> None:
        needed = min((reader.next for reader in self._readers), default=self.end)
        while self._frames and self.first < needed:
            self._drop()

    def _drop(self) -> None:
        self._chars -= len(self._frames.popleft().text)

    def _is_full(self) -> bool:
        return len(self._frames) > self._max_frames or self._chars > self._max_chars


class Reader:
    """A reader of a buffer; `next` is the number of the frame that it takes next."""

    def __init__(self, buffer: FrameBuffer, first: int, wake: asyncio.Event) -> None:
        self._buffer = buffer
        self.next = first
        self.wake = wake

    def take(self) -> list[ReadyFrame]:
        """Return the frames that are new. Raises FellBehind if some of them are gone."""
        self.wake.clear()
        frames = self._buffer._take(self.next)
        self.next += len(frames)
        if frames:
            self._buffer._drop_read()
        return frames
