"""The stream of a conversation over one connection, for all readers of its log in a client."""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from random import uniform
from time import monotonic
from typing import TypeAlias

import httpx2
from pydantic import ValidationError

from perdure.agent.loop.start import ConversationStatus
from perdure.api.frames import (
    FRAME,
    DeltaFrame,
    DurableFrame,
    ErrorFrame,
    Frame,
    ItemAbortedFrame,
    StatusFrame,
    SyncFrame,
)
from perdure.api.problem import Problem
from perdure.client.http.connection import Connection
from perdure.client.http.entries import parse_served_entry
from perdure.client.http.problems import to_error
from perdure.client.running_step import RunningStep
from perdure.errors import Forbidden, Invalid, NotFound, PerdureError
from perdure.events.entry import Entry

FIRST_PAUSE, MAX_PAUSE = 0.1, 2.0
"""Seconds between two attempts to connect again."""

MAX_STATUSES = 256
"""The newest statuses that are remembered for readers that are behind."""

StepKey: TypeAlias = tuple[str, str]
"""The run and the activity of a step."""

FINAL_ERRORS = (Forbidden, Invalid, NotFound)
"""Errors that no other attempt mends."""


class SharedStream:
    """The stream of a conversation's frames, open as long as anybody follows it here.

    It connects again from the last entry that it has. `take` receives each entry once, in order.
    `steps` are the steps at work with their text, `end` the number of slots that the log had when
    the stream last told, and `failure` the reason why nothing more comes.
    """

    def __init__(
        self, connection: Connection, path: str, owner: str | None, take: Callable[[Entry], None]
    ) -> None:
        self.steps: dict[StepKey, RunningStep] = {}
        self.end = 0
        self.is_live = False
        """Whether the stream is open, so that `end` is up to date."""
        self.failure: PerdureError | None = None
        self._connection = connection
        self._path = path
        self._owner = owner
        self._take = take
        self.status_count = 0
        """The number of statuses that have come."""
        self._statuses: deque[ConversationStatus] = deque(maxlen=MAX_STATUSES)
        self._offsets: dict[StepKey, int] = {}
        self._seq = -1
        self._followers = 0
        self._task: asyncio.Task[None] | None = None
        self._bell = asyncio.Event()

    @contextlib.asynccontextmanager
    async def attach(self, after: int) -> AsyncIterator[None]:
        """Keep the stream open meanwhile; the first one says after which slot it begins."""
        self._followers += 1
        if self._task is None:
            self._seq, self.failure = after, None
            self._task = asyncio.create_task(self._run())
            self._task.add_done_callback(lambda _: self._ring())
        try:
            yield
        finally:
            self._followers -= 1
            if not self._followers:
                task, self._task = self._task, None
                task.cancel()
                await asyncio.wait({task})
                self.is_live = False
                self.steps.clear()

    async def wait(self, seconds: float | None = None) -> None:
        """Wait until anything has changed, for some seconds at most."""
        if self._task is not None and self._task.done():
            self._task.result()  # raises what nobody foresaw
        bell = self._bell
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await bell.wait()

    def statuses_after(self, count: int) -> list[ConversationStatus]:
        """List the statuses behind the first `count`, as far as they are remembered."""
        missing = self.status_count - count
        return list(self._statuses)[-missing:] if missing > 0 else []

    def _ring(self) -> None:
        self._bell.set()
        self._bell = asyncio.Event()

    async def _run(self) -> None:
        """Read frames, and connect again after each loss, until nothing more can come."""
        pause, answered = FIRST_PAUSE, monotonic()
        while True:
            try:
                async with contextlib.aclosing(self._read_frames()) as frames:
                    async for frame in frames:
                        pause, answered = FIRST_PAUSE, monotonic()
                        self._apply(frame)
                        self._ring()
                failure: Exception | None = None
            except (PerdureError, httpx2.HTTPError) as error:
                failure = error
            self.is_live = False
            is_lost = monotonic() - answered > self._connection.patience
            if isinstance(failure, FINAL_ERRORS) or (failure is not None and is_lost):
                self.failure = self._connection.explain(failure)
                self._ring()
                return
            self._ring()
            await asyncio.sleep(uniform(pause / 2, pause))
            pause = min(MAX_PAUSE, 2 * pause)

    async def _read_frames(self) -> AsyncGenerator[Frame, None]:
        last = str(self._seq) if self._seq >= 0 else None
        query = {"after_seq": self._seq, "owner": self._owner}
        async with self._connection.stream(f"{self._path}/stream", query, last) as source:
            async for event in source:
                if not event.data:
                    continue
                try:
                    yield FRAME.validate_json(event.data, extra="ignore")
                except ValidationError:  # a kind of frame that a newer gateway has
                    continue

    def _apply(self, frame: Frame) -> None:
        match frame:
            case SyncFrame(through_seq=through):
                self.end = max(self.end, through + 1)
                self.is_live = True
                self.steps.clear()
            case DurableFrame(seq=seq) if seq > self._seq:
                self._take(entry := parse_served_entry(seq, frame.entry))
                self._seq, self.end = seq, max(self.end, seq + 1)
                self._drop(entry.origin.run, entry.origin.activity.partition(" ")[0])
            case DeltaFrame():
                self._grow(frame)
            case ItemAbortedFrame(run=run, item_id=item):
                self._drop(run, item)
            case StatusFrame(status=status):
                self.end = max(self.end, status.next_seq)
                self.status_count += 1
                self._statuses.append(status)
            case ErrorFrame(code=code, detail=detail):
                raise to_error(Problem(title="", status=503, code=code, detail=detail))
            case _:
                pass

    def _grow(self, delta: DeltaFrame) -> None:
        """Put a part into the text of its step, in place of what was behind its offset.

        A higher attempt begins with no text.
        """
        key = (delta.run, delta.item_id)
        step = self.steps.get(key)
        if step is not None and delta.attempt < step.attempt:
            return
        if step is None or delta.attempt > step.attempt:
            self._offsets[key] = delta.offset
            text = ""
        else:
            text = step.text
        at = delta.offset - self._offsets[key]
        if not 0 <= at <= len(text):  # what is before the part is not known
            self._offsets[key], at = delta.offset, 0
        self.steps[key] = RunningStep(
            kind=delta.step,
            activity_id=delta.item_id,
            attempt=delta.attempt,
            text=text[:at] + delta.text,
            run_id=delta.run,
            offset=self._offsets[key],
        )

    def _drop(self, run_id: str, activity_id: str) -> None:
        self.steps.pop((run_id, activity_id), None)
        self._offsets.pop((run_id, activity_id), None)
