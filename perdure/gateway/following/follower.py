"""One conversation, followed for all of its clients in this process."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from time import monotonic

from perdure.agent.loop.evolve import fold
from perdure.agent.loop.start import ConversationStatus, build_status
from perdure.agent.loop.state import State
from perdure.api.frames import ErrorFrame, Frame, NoticeFrame, StatusFrame
from perdure.api.notices import notice_of_event
from perdure.client.conversation import Conversation
from perdure.client.running_step import with_steps
from perdure.client.workflow import ConversationWorkflow
from perdure.errors import Unreachable
from perdure.events.entry import Entry
from perdure.events.projection import summarize
from perdure.gateway.following.change_watch import Change, ChangeWatch
from perdure.gateway.following.frame_buffer import FrameBuffer
from perdure.gateway.following.history_watch import HistoryWatch
from perdure.gateway.following.pacing import Pacing
from perdure.gateway.following.ready_frame import ReadyFrame, make_durable, make_ready
from perdure.gateway.following.settings import FollowingLimits
from perdure.gateway.following.step_texts import StepTexts
from perdure.gateway.following.step_watch import StepWatch
from perdure.storage.errors import BadSlot, StoreError, StoreUnavailable, explain_read_only
from perdure.storage.log.state import read_state

logger = logging.getLogger("perdure.gateway")

FIRST_PAUSE = 0.25
MAX_PAUSE = 30.0
"""Seconds between two looks at the log, or tries to reach the store, while one does not answer."""

HINT_SECONDS = 10.0
"""Seconds after a hint for which the workflow is watched without waiting for a turn."""

BURST = 3
"""Entries that are read one by one; after these, more are expected at once."""

BURST_READ = 32

StatusListener = Callable[[ConversationStatus], None]
EntryListener = Callable[[Entry], None]


class Follower:
    """A conversation as it changes.

    `state` is the fold of the entries that have been published: a client reads those before
    `state.next_seq` from the log, and the others from `frames`. `on_status` is called with each
    new status, and `on_entry` with each new entry, if anybody measures them.
    """

    def __init__(
        self,
        conversation: Conversation,
        changes: ChangeWatch,
        pacing: Pacing,
        limits: FollowingLimits,
        on_status: StatusListener,
        on_entry: EntryListener | None = None,
    ) -> None:
        self.conversation = conversation
        self.log = conversation.log
        self.frames = FrameBuffer(limits.buffered_frames, limits.buffered_chars)
        self.texts = StepTexts()
        self.state = State()
        self.status: ConversationStatus | None = None
        self.trouble: str | None = None
        self.end: ErrorFrame | None = None
        """The reason why it is not followed any more."""
        self.clients = 0
        self.last_growth = monotonic()
        """The time at which the log was last seen to grow, in seconds of `monotonic`."""
        self.history = HistoryWatch(self.workflow)
        self._changes = changes
        self._pacing = pacing
        self._on_status, self._on_entry = on_status, on_entry
        self._reading = asyncio.Lock()
        self._rung = asyncio.Event()
        self._hinted = 0.0
        self._knows_run = False
        self._steps = StepWatch(self, pacing)
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Is done once `state` is what the log has, with an error if it cannot be read."""
        self.ready.add_done_callback(lambda ready: ready.cancelled() or ready.exception())
        self.task = asyncio.create_task(self._run())

    @property
    def workflow(self) -> ConversationWorkflow:
        return self.conversation.workflow

    def hint(self) -> None:
        """Say that somebody has just asked the conversation for something."""
        self._hinted = monotonic()
        self._rung.set()

    def publish(self, frames: Iterable[Frame]) -> None:
        self.frames.publish(map(make_ready, frames))

    def notify(self, notice: NoticeFrame) -> None:
        """Send a notice to all clients."""
        self.publish([notice])

    def watch_steps(self) -> None:
        """Look at the steps that are at work, if there are any and a client is attached."""
        if self.clients and self.history.is_busy and self.end is None:
            self._steps.start()

    def stop(self, reason: ErrorFrame) -> None:
        """End all clients' connections for this reason."""
        if self.end is None:
            self.end = reason
        self._steps.stop()
        self.task.cancel()
        if not self.ready.done():
            self.ready.set_exception(Unreachable(reason.detail))
        self.frames.publish([])  # wakes the readers

    async def wait_closed(self) -> None:
        """Wait until nothing of it is at work; `stop` has been called."""
        await asyncio.wait([self.task])
        await self._steps.wait_closed()

    async def read_log(self) -> None:
        """Publish all entries that the log has; wait as long as the store does not answer."""
        async with self._reading:
            before, pause = self.state.next_seq, FIRST_PAUSE
            while True:
                try:
                    await self._read_new()
                    break
                except StoreUnavailable as error:
                    logger.info("%s is not read: %s", self.conversation.id, error)
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, MAX_PAUSE)
            if self.state.next_seq > before:
                self.last_growth, self.trouble = monotonic(), None
            self.publish_status()

    def publish_status(self) -> None:
        """Publish the status if it has changed."""
        status = build_status(self.conversation.id, self.state)
        status = with_steps(status, self.texts.at_work.current)
        status = status.model_copy(update={"trouble": self.trouble})
        if status != self.status:
            self.status = status
            self.publish([StatusFrame(status=status)])
            self._on_status(status)

    async def _read_new(self) -> None:
        for _ in range(BURST):
            entry = await self.log.find(self.state.next_seq)
            if entry is None:
                return
            self._take(entry)
        while entries := await self.log.read(self.state.next_seq, BURST_READ):
            for entry in entries:
                self._take(entry)
            if len(entries) < BURST_READ:
                return
            self.publish_status()

    def _take(self, entry: Entry) -> None:
        frames: list[ReadyFrame] = [make_ready(part) for part in self.texts.settle(entry)]
        self.frames.publish([*frames, make_durable(entry.seq, entry.body)])
        if self._on_entry is not None:
            self._on_entry(entry)
        self.state = fold(self.state, [summarize(entry)])
        if (notice := notice_of_event(entry.event)) is not None:
            self.publish([notice])

    async def _run(self) -> None:
        try:
            workflow_id = self.workflow.address.own_id
            with self._changes.listen(self._on_change, workflow_id):
                await self._begin()
                while True:
                    await self._follow()
        except BadSlot as error:
            detail = explain_read_only(self.conversation.id, error)
            self._fail(error, ErrorFrame(code="damaged", detail=detail))
        except StoreError as error:
            logger.warning("%s is not followed any more: %s", self.conversation.id, error)
            detail = "The store does not answer as it should: come back later."
            self._fail(error, ErrorFrame(code="store_unavailable", detail=detail))
        except Exception as error:
            logger.exception("%s is not followed any more", self.conversation.id)
            detail = "The conversation cannot be followed now: come back later."
            self._fail(error, ErrorFrame(code="internal", detail=detail))

    async def _begin(self) -> None:
        # The history first: what is appended after the log is read rings.
        with suppress(Unreachable):
            await self._find_run()
        self.state = await read_state(self.log)
        self.publish_status()
        self.ready.set_result(None)

    async def _follow(self) -> None:
        """Wait for the doorbell, and read the log when it rings."""
        pause = FIRST_PAUSE
        while True:
            try:
                if self.history.is_open:
                    await self._attend()
                else:
                    await self._rest()
                return
            except Unreachable as error:
                logger.info("%s: %s", self.conversation.id, error)
            await self._wait_for_ring(pause)
            pause = min(2 * pause, MAX_PAUSE)
            await self.read_log()

    async def _attend(self) -> None:
        """Follow the history of a workflow that is open, until it is not."""
        check_again = False
        while self.history.is_open:
            if self._is_at_rest():
                async with self._pacing.take_turn(self._rung):
                    rung = await self.history.poll()
            else:
                rung = await self.history.poll()
            self._rung.clear()
            if rung or (rung is None and check_again):
                await self.read_log()
            # A lost worker may write late what the workflow does not wait for any more.
            check_again = rung is not None
            self.watch_steps()
        await self._find_run()  # another may have begun before this one was seen to end

    async def _rest(self) -> None:
        """Wait until the workflow has begun again, or may have."""
        if self._knows_run:
            if self.state.status == "running":
                await self._steps.diagnose()
            await self._rung.wait()
        self._rung.clear()
        await self._find_run()
        await self.read_log()

    async def _find_run(self) -> None:
        self._knows_run = False
        await self.history.find_run()
        self._knows_run = True

    def _is_at_rest(self) -> bool:
        hinted = monotonic() - self._hinted < HINT_SECONDS
        return self.state.at_rest and not self.history.is_busy and not hinted

    async def _wait_for_ring(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._rung.wait()
        except TimeoutError:
            return

    def _on_change(self, change: Change) -> None:
        has_ended = not self.history.is_open and not change.is_open
        if not (has_ended and change.run_id == self.history.run_id):
            self.hint()

    def _fail(self, error: Exception, reason: ErrorFrame) -> None:
        if not self.ready.done():
            self.ready.set_exception(error)
        self.stop(reason)
