"""The turns of a discussion's agents: each is a turn of the agent's own conversation."""

import asyncio
import contextlib
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ChildWorkflowError, WorkflowAlreadyStartedError
from temporalio.workflow import ChildWorkflowHandle

from perdure.agent.discussion.state import DiscussionStart, DiscussionState
from perdure.agent.discussion.steps import PrepareTurn, TakeTurns
from perdure.agent.loop.start import ConversationStatus, Start
from perdure.agent.loop.step_summary import shorten_summary
from perdure.temporal.timeouts import TASK_TIMEOUT
from perdure.workflows.batch.background import BackgroundTasks, run_activity, signal_workflow
from perdure.workflows.ids import child_id
from perdure.workflows.step_failures import reason_of

ALREADY_STARTED = "another workflow has its conversation: it was written to beside the discussion"
CLOSED_MEANWHILE = "the discussion was closed"

INTERRUPT_INTERVAL = timedelta(seconds=5)
"""Time after which a turn that goes on is resumed and interrupted again."""

FIRST_DELAY, MAX_DELAY = 1.0, 30.0
"""Seconds until a conversation that another workflow has is tried again, doubled each time."""


class Turns:
    """The turns that are being taken, by speaker: the ids of the conversations' workflows."""

    def __init__(self, start: DiscussionStart) -> None:
        self.start = start
        self.running: dict[str, str] = {}
        self.tasks = BackgroundTasks()
        self.is_stopped = False
        self.is_paused = start.is_paused

    async def take(self, step: TakeTurns, state: DiscussionState, seconds: float) -> dict[str, str]:
        """Let the speakers take their turns side by side; return why some gave no answer.

        After `seconds` those who are still at it are interrupted.
        """
        failures = await asyncio.gather(
            *(self._take_one(step, state, speaker, seconds) for speaker in step.speakers)
        )
        return {
            speaker: failure
            for speaker, failure in zip(step.speakers, failures, strict=True)
            if failure is not None
        }

    def pause(self) -> None:
        """Pause the turns that run, whose time stands still, and those that begin."""
        self.is_paused = True
        self._signal("pause")

    def resume(self) -> None:
        self.is_paused = False
        self._signal("resume")

    def stop(self) -> None:
        """Interrupt the turns that run; none begins any more."""
        self.is_stopped = True
        if self.is_paused:
            self._signal("resume")
        self._signal("interrupt")

    def _signal(self, name: str) -> None:
        """Signal every conversation that takes a turn."""
        for workflow_id in self.running.values():
            self.tasks.launch(signal_workflow(workflow_id, name))

    async def _take_one(
        self, step: TakeTurns, state: DiscussionState, speaker: str, seconds: float
    ) -> str | None:
        request = PrepareTurn(
            key=self.start.key,
            step=step,
            speaker=speaker,
            seen=state.seen.get(speaker, 0),
            through=state.end,
            begun=speaker in state.begun,
            searchable=self.start.searchable,
            model_queues=self.start.model_queues,
        )
        summary = shorten_summary(f"{step.request} of {speaker}")
        prepared = await run_activity("discussion.prepare", request, Start, summary=summary)
        if self.is_stopped:
            return CLOSED_MEANWHILE
        try:
            failure = await self._run_child(prepared, speaker, summary, seconds)
        except ChildWorkflowError as error:
            failure = f"its conversation failed: {reason_of(error)}"
        # Not after a cancellation: the turn runs on, and whoever closes interrupts it.
        self.running.pop(speaker, None)
        return failure

    async def _run_child(
        self, prepared: Start, speaker: str, summary: str, seconds: float
    ) -> str | None:
        child = await self._start_child(prepared, summary, seconds)
        if child is None:
            return ALREADY_STARTED
        self.running[speaker] = child.id
        failure = None
        if self.is_paused and not self.is_stopped:
            await signal_workflow(child.id, "pause")
        if not await self._ends_within(seconds, child):
            failure = f"it took more than {seconds:g} s"
            await self._interrupt(child)
        await child
        return CLOSED_MEANWHILE if self.is_stopped else failure

    async def _interrupt(self, child: ChildWorkflowHandle[Any, ConversationStatus]) -> None:
        """Interrupt a turn; one that is paused has to be resumed first, whoever has paused it."""
        resumes = self.is_paused
        while not child.done():
            if resumes:
                await signal_workflow(child.id, "resume")
            await signal_workflow(child.id, "interrupt")
            resumes = True
            with contextlib.suppress(TimeoutError):
                await workflow.wait_condition(child.done, timeout=INTERRUPT_INTERVAL)

    async def _start_child(
        self, prepared: Start, summary: str, seconds: float
    ) -> ChildWorkflowHandle[Any, ConversationStatus] | None:
        """Start the turn; None if another workflow has the conversation for too long.

        A discussion that was lost may have left one, which ends with its turn. The same message is
        not asked again then.
        """
        waited, delay = 0.0, FIRST_DELAY
        while True:
            try:
                return await workflow.start_child_workflow(
                    "Conversation",
                    prepared,
                    id=child_id(prepared.conversation_id),
                    result_type=ConversationStatus,
                    task_timeout=TASK_TIMEOUT,
                    parent_close_policy=workflow.ParentClosePolicy.ABANDON,
                    static_summary=f"{self.start.key.session_id} · {summary}",
                )
            except WorkflowAlreadyStartedError:
                if waited >= seconds or self.is_stopped:
                    return None
            await workflow.sleep(delay)
            waited, delay = waited + delay, min(2 * delay, MAX_DELAY)

    async def _ends_within(self, seconds: float, child: asyncio.Future[Any]) -> bool:
        """Wait for the end of a turn, or of the discussion; after a pause its time begins anew."""
        while not self.is_stopped:
            try:
                await workflow.wait_condition(
                    lambda: child.done() or self.is_stopped,
                    timeout=timedelta(seconds=max(seconds, 0.001)),
                    timeout_summary="interrupt the turn",
                )
                return child.done()
            except TimeoutError:
                if not self.is_paused:
                    return False
            await workflow.wait_condition(
                lambda: child.done() or self.is_stopped or not self.is_paused
            )
        return child.done()
