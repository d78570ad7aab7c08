"""Background tasks, activities and signals of batch workflows."""

import asyncio
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from perdure.evaluation.progress import PROGRESS_MEMO, Progress, progress_markdown
from perdure.temporal.timeouts import HEARTBEAT_TIMEOUT, UNLIMITED_RETRIES

MAX_ACTIVITY_TIME = timedelta(days=1)

Result = TypeVar("Result")


class BackgroundTasks:
    """Tasks that run beside a workflow's loop; the error of one ends the workflow."""

    def __init__(self) -> None:
        self.tasks: set[asyncio.Task[None]] = set()
        self.error: BaseException | None = None
        self.has_changed = True
        """Something has changed since the loop looked at the state."""

    def launch(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self._on_done)

    def _on_done(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        self.has_changed = True
        if not task.cancelled() and (error := task.exception()) is not None:
            self.error = error

    def raise_error(self) -> None:
        """Raise the error of a task that failed."""
        if self.error is not None:
            raise self.error

    def cancel(self) -> None:
        for task in list(self.tasks):
            task.cancel()


async def run_activity(
    kind: str,
    argument: Any,
    result_type: type[Result],
    time_limit: timedelta = MAX_ACTIVITY_TIME,
    **options: Any,
) -> Result:
    """Run an activity. Raises ActivityError if no retry can help."""
    result: Result = await workflow.execute_activity(
        kind,
        argument,
        result_type=result_type,
        heartbeat_timeout=HEARTBEAT_TIMEOUT,
        start_to_close_timeout=time_limit,
        retry_policy=UNLIMITED_RETRIES,
        **options,
    )
    return result


async def signal_workflow(workflow_id: str, name: str, *value: Any) -> None:
    """Signal another workflow, unless it has just ended."""
    handle = workflow.get_external_workflow_handle(workflow_id)
    try:
        await handle.signal(name, args=list(value))
    except ApplicationError:
        workflow.logger.debug("%s has ended before the signal %s", workflow_id, name)


async def cancel_workflow(workflow_id: str) -> None:
    try:
        await workflow.get_external_workflow_handle(workflow_id).cancel()
    except ApplicationError:
        workflow.logger.debug("%s has ended by itself", workflow_id)


def publish(progress: Progress) -> None:
    """Publish the progress in the workflow's memo, as a query may change the order of events.

    The reason stands in docs/decisions/2026-11-22-batch-progress-in-the-memo.md.
    """
    memo = progress.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    workflow.upsert_memo({PROGRESS_MEMO: memo})
    workflow.set_current_details(progress_markdown(progress))
