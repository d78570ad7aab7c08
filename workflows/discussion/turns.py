"""The turns of a discussion's agents: each is a turn of the agent's own conversation."""

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ChildWorkflowError, WorkflowAlreadyStartedError

from perdure.agent.discussion.state import DiscussionStart, DiscussionState
from perdure.agent.discussion.steps import PrepareTurn, TakeTurns
from perdure.agent.loop.start import ConversationStatus, Start
from perdure.agent.loop.step_summary import shorten_summary
from perdure.temporal.timeouts import TASK_TIMEOUT
from perdure.workflows.batch.background import BackgroundTasks, run_activity, signal_workflow
from perdure.workflows.ids import child_id
from perdure.workflows.step_failures import reason_of

ALREADY_STARTED = "another workflow has its conversation: it was written to beside the discussion"


class Turns:
    """The turns that are being taken, by speaker: the ids of the conversations' workflows."""

    def __init__(self, start: DiscussionStart) -> None:
        self.start = start
        self.running: dict[str, str] = {}
        self.tasks = BackgroundTasks()
        self.is_stopped = False

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

    def signal(self, name: str) -> None:
        """Signal every conversation that takes a turn."""
        for workflow_id in self.running.values():
            self.tasks.launch(signal_workflow(workflow_id, name))

    def stop(self) -> None:
        """Interrupt the turns that run; none begins any more."""
        self.is_stopped = True
        self.signal("interrupt")

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
            return "the discussion was closed"
        try:
            return await self._run_child(prepared, speaker, summary, seconds)
        except WorkflowAlreadyStartedError:
            return ALREADY_STARTED
        except ChildWorkflowError as error:
            return f"its conversation failed: {reason_of(error)}"
        finally:
            self.running.pop(speaker, None)

    async def _run_child(
        self, prepared: Start, speaker: str, summary: str, seconds: float
    ) -> str | None:
        workflow_id = child_id(prepared.conversation_id)
        child = await workflow.start_child_workflow(
            "Conversation",
            prepared,
            id=workflow_id,
            result_type=ConversationStatus,
            cancellation_type=workflow.ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
            task_timeout=TASK_TIMEOUT,
            parent_close_policy=workflow.ParentClosePolicy.REQUEST_CANCEL,
            static_summary=f"{self.start.key.session_id} · {summary}",
        )
        self.running[speaker] = workflow_id
        failure = None
        if self.is_stopped:
            await signal_workflow(workflow_id, "interrupt")
        try:
            await workflow.wait_condition(
                child.done,
                timeout=timedelta(seconds=max(seconds, 0.001)),
                timeout_summary="interrupt the turn",
            )
        except TimeoutError:
            failure = f"it took more than {seconds:g} s"
            await signal_workflow(workflow_id, "interrupt")
        await child
        return "the discussion was closed" if self.is_stopped else failure
