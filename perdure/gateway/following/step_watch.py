"""Looking at the steps at work: for their growing text, and for what holds them up."""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from time import monotonic
from typing import Protocol

from perdure.api.frames import Frame, NoticeFrame
from perdure.client.diagnosis.diagnose import diagnose_workflow
from perdure.client.live import list_running_steps
from perdure.client.running_step import RunningStep
from perdure.client.workflow import ConversationWorkflow
from perdure.errors import Unreachable
from perdure.events.status import describe_retry
from perdure.gateway.following.history_watch import HistoryWatch
from perdure.gateway.following.pacing import Pacing
from perdure.gateway.following.step_texts import StepTexts
from perdure.storage.cache import Cache
from perdure.storage.errors import StoreError

logger = logging.getLogger("perdure.gateway")

QUIET_SECONDS = 5.0
"""Seconds without a new entry, or since the last time, after which the reason is looked for."""

QUIET_LOOKS = 4
"""Looks at a text that has not grown after which it is looked at half as often."""

SLOWEST = 4
"""The number of intervals between two looks at a text that does not grow."""

RETRY_NOTICE = "STATUS$LLM_RETRY"
"""The id of the notice that a model is asked again, with the reason as its message."""

MAX_NOTICES = 64


class StepListener(Protocol):
    """The follower of a conversation, as far as its steps concern it."""

    texts: StepTexts
    history: HistoryWatch
    trouble: str | None
    clients: int

    @property
    def workflow(self) -> ConversationWorkflow: ...

    @property
    def last_growth(self) -> float:
        """The time at which the log was last seen to grow, in seconds of `monotonic`."""

    def publish(self, frames: Iterable[Frame]) -> None: ...

    def publish_status(self) -> None: ...

    async def read_log(self) -> None: ...


class StepWatch:
    """The looks at the steps of one conversation, while any is at work and a client is attached."""

    def __init__(self, followed: StepListener, pacing: Pacing) -> None:
        self._followed = followed
        self._pacing = pacing
        self._task: asyncio.Task[None] | None = None
        self._notices: Cache[tuple[str, str, int], bool] = Cache(MAX_NOTICES)
        self._diagnosed = 0.0

    def start(self) -> None:
        """Begin to look, unless that goes on."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run_safely())

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def wait_closed(self) -> None:
        if self._task is not None:
            await asyncio.wait([self._task])

    async def diagnose(self) -> None:
        """Find what holds the conversation up, and publish it with its status."""
        followed = self._followed
        self._diagnosed = monotonic()
        try:
            trouble = await diagnose_workflow(followed.workflow)
        except Unreachable:
            return
        if self._diagnosed > followed.last_growth:
            followed.trouble = trouble.sentence if trouble else None
            followed.publish_status()

    async def _run_safely(self) -> None:
        try:
            await self._run()
        except StoreError:
            return  # whoever reads the log next says so
        except Exception:
            logger.exception(
                "the steps of %s are not looked at", self._followed.workflow.workflow_id
            )

    async def _run(self) -> None:
        followed, quiet = self._followed, 0
        with self._pacing.look_at_text():
            while followed.history.is_busy and followed.clients:
                slowness = min(SLOWEST, 2 ** (quiet // QUIET_LOOKS))
                await asyncio.sleep(self._pacing.text_interval * slowness)
                if followed.history.steps:
                    try:
                        quiet = 0 if await self._look() else quiet + 1
                    except Unreachable:
                        quiet += 1
                if monotonic() - max(followed.last_growth, self._diagnosed) > QUIET_SECONDS:
                    await self.diagnose()
        if not followed.history.steps:
            followed.texts.observe(())
            await self._abort_gone(())
            followed.publish_status()

    async def _look(self) -> bool:
        """Look at the steps once; tell whether a text has grown. Raises Unreachable."""
        steps = await list_running_steps(self._followed.workflow)
        parts = self._followed.texts.observe(steps)
        self._followed.publish([*self._list_notices(steps), *parts])
        await self._abort_gone(steps)
        self._followed.publish_status()
        return bool(parts)

    async def _abort_gone(self, steps: Sequence[RunningStep]) -> None:
        """Take back the texts of steps that have ended without an event."""
        texts = self._followed.texts
        if gone := texts.list_gone(steps):
            await self._followed.read_log()  # which has the events of a step that has ended
            self._followed.publish(texts.abort(gone))

    def _list_notices(self, steps: Iterable[RunningStep]) -> list[Frame]:
        notices: list[Frame] = []
        for step in steps:
            key = (step.run_id, step.activity_id, step.attempt)
            is_retry = step.kind.startswith("llm.") and step.attempt > 1 and step.failure
            if is_retry and self._notices.get(key) is None:
                self._notices.put(key, True)
                again = f" ({describe_retry(step.retry)})" if step.retry else ""
                message = f"{step.failure}{again}"
                notices.append(NoticeFrame(type="info", id=RETRY_NOTICE, message=message))
        return notices
