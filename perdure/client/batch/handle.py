"""The handle of a batch: its progress, its diagnosis and its control."""

import asyncio
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from temporalio.api.enums.v1 import WorkflowExecutionStatus
from temporalio.api.workflowservice.v1 import (
    DescribeWorkflowExecutionResponse as WorkflowDescription,
)
from temporalio.client import (
    Client,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.exceptions import CancelledError, TerminatedError
from temporalio.service import RPCError, RPCStatusCode

from perdure.client.batch.counts import count_progress
from perdure.client.diagnosis.diagnose import DiagnosisOptions, diagnose_children, diagnose_workflow
from perdure.client.diagnosis.trouble import Trouble
from perdure.client.ids import NIL_CONVERSATION_ID
from perdure.client.workflow import ConversationWorkflow, is_running, raise_if_cancelled
from perdure.errors import Conflict, Invalid, NotFound, TimedOut, Unreachable
from perdure.evaluation.messages import LimitsUpdate
from perdure.evaluation.progress import PROGRESS_MEMO, Progress, merge_progress
from perdure.storage.batches import BatchFolder, BatchRecord
from perdure.storage.log.event_log import EventLog
from perdure.temporal.names import batch_name_of, batch_workflow_id

RESULT_TIMEOUT = timedelta(seconds=5)
"""The time within which Temporal must return the result of a batch."""

BATCH_UPDATE_TIMEOUT = 20.0
"""Seconds for a worker to apply an update."""

RECONNECT_INTERVAL = 2.0
"""Seconds between two attempts to reach Temporal."""

WORKFLOW_COMPLETED = WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_COMPLETED


@dataclass(frozen=True)
class BatchWorkflow(ConversationWorkflow):
    """The workflow of a batch; it has no log of its own."""

    batch: str = ""

    @property
    def workflow_id(self) -> str:
        return batch_workflow_id(self.batch)


@dataclass(frozen=True)
class BatchHandle:
    """A batch, whether it runs or not."""

    temporal: Client | None
    """None if Temporal is unreachable: only the store can be read then."""
    folder: BatchFolder
    task_queue: str
    attached: bool = False
    """The batch was running already when `run` was called."""

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def workflow_id(self) -> str:
        return batch_workflow_id(self.name)

    @property
    def handle(self) -> WorkflowHandle[Any, Progress]:
        """Return the handle of the workflow. Raises Unreachable."""
        return self._require_temporal().get_workflow_handle(self.workflow_id, result_type=Progress)

    async def load_record(self) -> BatchRecord:
        """Load the record of the batch. Raises NotFound, Altered, StoreUnavailable."""
        record = await self.folder.load()
        if record is None:
            raise NotFound(f"There is no batch {self.name}.", "`perdure batch status` lists them.")
        return record

    async def status(self) -> Progress:
        """Load the progress from the workflow, or count it in the store if none answers.

        Raises NotFound and StoreError.
        """
        try:
            description = await self.describe()
            if description is not None and is_running(description):
                return await self.query_progress() or await self._count_unanswered(description)
            if (
                description is not None
                and description.workflow_execution_info.status == WORKFLOW_COMPLETED
            ):
                return await self.handle.result(rpc_timeout=RESULT_TIMEOUT)
        except (Unreachable, RPCError):
            progress = await self.count_progress()
            reason = "Temporal does not answer: this is what the store has"
            return progress if progress.status == "finished" else _with_reason(progress, reason)
        return await self.count_progress()

    async def count_progress(self) -> Progress:
        """Count the progress from the results in the store. Raises NotFound and StoreError."""
        return await count_progress(self.folder, await self.load_record())

    async def describe(self) -> WorkflowDescription | None:
        """Describe the workflow; None if Temporal does not know it. Raises Unreachable."""
        return await self._workflow().describe()

    async def is_running(self) -> bool:
        """Tell whether the workflow runs or waits for a worker. Raises Unreachable."""
        return is_running(await self.describe())

    async def query_progress(self) -> Progress | None:
        """Load the progress that the workflow has published; None if it cannot be loaded."""
        whole = await self._load_memo_progress(self.workflow_id)
        if whole is None or whole.parts < 2:
            return whole
        ids = (f"{self.workflow_id}/{shard}" for shard in range(whole.parts))
        loaded = await asyncio.gather(*map(self._load_memo_progress, ids))
        shards = [progress for progress in loaded if progress is not None]
        # The shards' own figures are newer; if one is missing, the batch's last sum is better.
        return _merge_shards(whole, shards) if len(shards) == whole.parts else whole

    async def diagnose(self) -> Trouble | None:
        """Find what blocks the batch or some of its samples; None if all progress."""
        try:
            description = await self.describe()
            if not is_running(description):
                return None
            assert description is not None, "a running workflow has a description"
            own = await diagnose_workflow(
                self._workflow(), description, DiagnosisOptions(check_store=False, delegate_depth=0)
            )
            return own or await self._diagnose_samples(description)
        except Unreachable as error:
            return Trouble("temporal", f"{error} It goes on by itself when that does.")

    async def pause(self) -> None:
        """Start no further samples; running ones finish. Raises as `resume`."""
        await self._signal("pause")

    async def resume(self) -> None:
        """Start samples again. Raises Conflict if it does not run, NotFound, Unreachable."""
        await self._signal("resume")

    async def update_limits(
        self, changes: LimitsUpdate, max_wait: float = BATCH_UPDATE_TIMEOUT
    ) -> Progress:
        """Change concurrency and limits while it runs.

        Raises Conflict if it does not run, Invalid, NotFound, Unreachable, and TimedOut: the change
        may still take effect then.
        """
        try:
            async with asyncio.timeout(max_wait):
                progress: Progress = await self.handle.execute_update(
                    "retune", changes, result_type=Progress
                )
                return progress
        except (TimeoutError, WorkflowUpdateRPCTimeoutOrCancelledError) as error:
            raise_if_cancelled(error)
            raise TimedOut(
                f"No worker took the change within {max_wait:g} s.",
                "Start one with `perdure dev` or `perdure worker`; it comes into force then.",
            ) from error
        except WorkflowUpdateFailedError as error:
            raise Invalid(getattr(error.cause, "message", str(error.cause))) from error
        except RPCError as error:
            raise await self._to_client_error(error) from error

    async def wait_until_finished(self) -> Progress:
        """Wait until the batch has finished, through outages of Temporal.

        If its workflow failed or was stopped, the progress is counted in the store, and `reason`
        says why.
        """
        while True:
            try:
                return await self.handle.result()
            except WorkflowFailureError as error:
                return _with_reason(await self.count_progress(), _describe_end(error))
            except RPCError as error:
                if error.status is RPCStatusCode.NOT_FOUND:
                    reason = "Temporal does not know its workflow any more"
                    return _with_reason(await self.count_progress(), reason)
            await asyncio.sleep(RECONNECT_INTERVAL)

    async def _load_memo_progress(self, workflow_id: str) -> Progress | None:
        """Load the progress in a workflow's memo; None before its first step."""
        batch = batch_name_of(workflow_id)
        try:
            description = await replace(self._workflow(), batch=batch).describe()
        except Unreachable:
            return None
        return await decode_progress(self._require_temporal(), description) if description else None

    async def _count_unanswered(self, description: WorkflowDescription) -> Progress:
        progress = await self.count_progress()
        trouble = await diagnose_workflow(
            self._workflow(), description, DiagnosisOptions(check_store=False, delegate_depth=0)
        )
        reason = (
            trouble.sentence if trouble else "No worker has told anything yet: the store has this"
        )
        return progress.model_copy(update={"status": "running", "reason": reason})

    async def _diagnose_samples(self, description: WorkflowDescription) -> Trouble | None:
        sample = ConversationWorkflow(
            self._require_temporal(),
            self._workflow().log,
            self.task_queue,
            _without_search_attributes,
        )
        return await diagnose_children(
            sample, description, DiagnosisOptions(check_store=False), _sample_trouble
        )

    async def _signal(self, name: str) -> None:
        try:
            await self.handle.signal(name)
        except RPCError as error:
            raise await self._to_client_error(error) from error

    async def _to_client_error(self, error: RPCError) -> Conflict | NotFound | Unreachable:
        if error.status is not RPCStatusCode.NOT_FOUND:
            return Unreachable(f"Temporal did not take it: {error.message}")
        try:
            await self.load_record()
        except NotFound as unknown:
            return unknown
        return Conflict(
            f"The batch {self.name} is not running.",
            f"`perdure batch retry {self.name}` runs what is left of it.",
        )

    def _require_temporal(self) -> Client:
        """Return the Temporal client. Raises Unreachable if there is none."""
        if self.temporal is None:
            raise Unreachable("Temporal does not answer.")
        return self.temporal

    def _workflow(self) -> BatchWorkflow:
        log = EventLog(self.folder.store, self.folder.user_id, NIL_CONVERSATION_ID)
        return BatchWorkflow(
            self._require_temporal(),
            log,
            self.task_queue,
            _without_search_attributes,
            batch=self.name,
        )


async def _without_search_attributes() -> bool:
    return False


def _sample_trouble(name: str, trouble: Trouble) -> Trouble:
    return trouble._replace(sentence=f"The conversation {name}: {trouble.sentence}")


def _with_reason(progress: Progress, reason: str) -> Progress:
    return progress.model_copy(update={"reason": reason})


def _merge_shards(whole: Progress, shards: list[Progress]) -> Progress:
    counted = merge_progress(whole.name, shards)
    own = ("status", "reason", "concurrency", "cost", "tokens", "parts")
    fields = {name: getattr(whole, name) for name in own}
    expected = max(whole.expected, counted.expected)
    return counted.model_copy(
        update={**fields, "expected": expected, "reason": whole.reason or counted.reason}
    )


def _describe_end(error: WorkflowFailureError) -> str:
    match error.cause:
        case TerminatedError():
            return "its workflow was terminated in Temporal"
        case CancelledError():
            return "its workflow was cancelled in Temporal"
        case cause:
            return f"its workflow failed: {getattr(cause, 'message', cause)}"


async def decode_progress(temporal: Client, description: WorkflowDescription) -> Progress | None:
    """Decode the progress in the memo of a described workflow."""
    payload = description.workflow_execution_info.memo.fields.get(PROGRESS_MEMO)
    if payload is None:
        return None
    [progress] = await temporal.data_converter.decode([payload], [Progress])
    result: Progress = progress
    return result
