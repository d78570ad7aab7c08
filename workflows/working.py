"""What the workflows of a batch have in common: work beside their loop, steps, and signals."""

import asyncio
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from workflows.options import PATIENT

SILENT = timedelta(seconds=5)

DAY = timedelta(days=1)


class Working:
    """Work that goes on beside a loop; what goes wrong in it ends the workflow, and is told."""

    def __init__(self) -> None:
        self.tasks: set[asyncio.Task[None]] = set()
        self.broken: BaseException | None = None
        self.news = True

    def launch(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        self.news = True
        if not task.cancelled() and (error := task.exception()) is not None:
            self.broken = error

    def check(self) -> None:
        """Raises what went wrong."""
        if self.broken is not None:
            raise self.broken

    def stop_working(self) -> None:
        for task in list(self.tasks):
            task.cancel()

    async def did(self, kind: str, asked: Any, result: Any, long: timedelta = DAY) -> Any:
        """What the activity says. Raises ActivityError where no repeat can help."""
        return await workflow.execute_activity(
            kind,
            asked,
            result_type=result,
            heartbeat_timeout=SILENT,
            start_to_close_timeout=long,
            retry_policy=PATIENT,
        )


async def tell(workflow_id: str, name: str, *value: Any) -> None:
    """Signal another workflow; one that has just ended need not hear it."""
    handle = workflow.get_external_workflow_handle(workflow_id)
    try:
        await handle.signal(name, args=list(value))
    except ApplicationError:
        workflow.logger.debug("%s has ended before it heard of %s", workflow_id, name)


async def cancel(workflow_id: str) -> None:
    try:
        await workflow.get_external_workflow_handle(workflow_id).cancel()
    except ApplicationError:
        workflow.logger.debug("%s has ended by itself", workflow_id)
