"""The follower of one discussion: it looks at the log and the status for all of its clients."""

import asyncio
import contextlib
from collections.abc import Sequence
from time import monotonic

from perdure.agent.discussion.state import DiscussionStatus
from perdure.api.discussions import DiscussionStatusFrame
from perdure.api.frames import ErrorFrame
from perdure.client.discussion.handle import MAX_PAGE, DiscussionHandle
from perdure.errors import ClientError
from perdure.gateway.following.discussion_frames import ReadyEvent, encode_frame, make_ready
from perdure.gateway.views.discussions import load_status
from perdure.storage.cache import Cache
from perdure.storage.errors import StoreError

LOOK_INTERVAL = 0.25
"""Seconds between two looks at the log of a discussion that runs."""

MAX_LOOK_INTERVAL = 2.0
"""Seconds between two looks once nothing has happened for a while."""

STATUS_INTERVAL = 2.0
"""Seconds after which a workflow is asked again for its status, though no event has come."""

KEPT_EVENTS = 500

ENDED = ("finished", "closed")


class DiscussionFollower:
    """Looks at a discussion while clients are attached: theirs are the `wakes`.

    `failure` is the reason why they get nothing more.
    """

    def __init__(self, handle: DiscussionHandle) -> None:
        self._handle = handle
        self._events: Cache[int, ReadyEvent] = Cache(KEPT_EVENTS)
        self._ready = asyncio.Event()
        self._asking: asyncio.Task[None] | None = None
        self.end = 0
        self.status: DiscussionStatus | None = None
        self.wakes: list[asyncio.Event] = []
        self.failure: ErrorFrame | None = None
        self._task = asyncio.create_task(self._run())

    async def begin(self) -> int:
        """Return the sequence of the newest event, once the log and the status are known."""
        await self._ready.wait()
        return self.end

    async def read(self, after: int) -> Sequence[ReadyEvent]:
        """Read the first events behind a sequence; none if there is none. Raises StoreError."""
        page = range(after + 1, min(after + MAX_PAGE, self.end) + 1)
        known = [event for it in page if (event := self._events.get(it)) is not None]
        if len(known) == len(page):
            return known
        events = [make_ready(event) for event in await self._handle.read(after)]
        for event in events:
            self._events.put(event.sequence, event)
        return events

    def encode_status(self) -> bytes:
        assert self.status is not None, "a client begins once the status is known"
        return encode_frame(DiscussionStatusFrame(status=self.status))

    def stop(self, reason: ErrorFrame | None = None) -> None:
        """End the looks; clients that are attached are told the reason."""
        self.failure = reason
        self._task.cancel()
        if self._asking is not None:
            self._asking.cancel()
        self._ready.set()
        self._ring()

    def _ring(self) -> None:
        for wake in self.wakes:
            wake.set()

    async def _run(self) -> None:
        """Look until the discussion is over: what is there then stays as it is."""
        pause, asked = LOOK_INTERVAL, 0.0
        while True:
            before = self.end
            with contextlib.suppress(StoreError):
                self.end = await self._handle.end()
            has_news = self.end != before
            if has_news:
                self._ring()
            if has_news or monotonic() - asked > STATUS_INTERVAL:
                asked = monotonic()
                self._ask()
            status = self.status
            if status is not None and status.status in ENDED and status.events == self.end:
                return
            pause = LOOK_INTERVAL if has_news else min(MAX_LOOK_INTERVAL, 1.3 * pause)
            await asyncio.sleep(pause)

    def _ask(self) -> None:
        """Ask for the status, unless a question waits for its answer."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._load_status())

    async def _load_status(self) -> None:
        status = self.status
        with contextlib.suppress(StoreError, ClientError):
            status = await load_status(self._handle)
        if status is not None and status != self.status:
            self.status = status
            self._ring()
        self._ready.set()
