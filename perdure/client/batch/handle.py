"""The handle of a batch: its progress, its diagnosis and its control."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from temporalio.api.enums.v1 import WorkflowExecutionStatus
from temporalio.client import (
    Client,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowUpdateFailedError,
)
from temporalio.exceptions import CancelledError, TerminatedError
from temporalio.service import RPCError, RPCStatusCode

from perdure.client.diagnosis.diagnose import DiagnosisOptions, diagnose_workflow
from perdure.client.diagnosis.trouble import Trouble, sample_trouble, temporal_unreachable
from perdure.client.ids import NIL_CONVERSATION_ID
from perdure.client.workflow import ConversationWorkflow, Description, is_running, limit_update
from perdure.errors import Conflict, Invalid, NotFound, Unreachable
from perdure.evaluation.messages import LimitsUpdate
from perdure.evaluation.progress import (
    PROGRESS_MEMO,
    Progress,
    count_attempts,
    merge_progress,
)
from perdure.storage.batches import BatchFolder, BatchRecord, list_sample_ids
from perdure.storage.log.event_log import EventLog
from perdure.temporal.names import batch_workflow_id

RESULT_TIMEOUT = timedelta(seconds=5)
"""The time within which Temporal must return the result of a batch."""

RECONNECT_INTERVAL = 2.0
"""Seconds between two attempts to reach Temporal."""

OWN_DIAGNOSIS = DiagnosisOptions(check_store=False, depth=0)
SAMPLES_DIAGNOSIS = OWN_DIAGNOSIS._replace(depth=3, describe_child=sample_trouble)

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
            if is_running(description):
                return await self.query_progress() or await self._count_unanswered()
            if description and description.workflow_execution_info.status == WORKFLOW_COMPLETED:
                return await self.handle.result(rpc_timeout=RESULT_TIMEOUT)
        except (Unreachable, RPCError):
            progress = await self.count_progress()
            reason = "Temporal does not answer: this is what the store has"
            return progress if progress.status == "finished" else _with_reason(progress, reason)
        return await self.count_progress()

    async def count_progress(self) -> Progress:
        """Count the progress from the results in the store. Raises NotFound and StoreError."""
        return await count_progress(self.folder, await self.load_record())

    async def describe(self) -> Description | None:
        """Describe the workflow; None if Temporal does not know it. Raises Unreachable."""
        return await self._workflow().describe()

    async def is_running(self) -> bool:
        """Tell whether the workflow runs or waits for a worker. Raises Unreachable."""
        return is_running(await self.describe())

    async def query_progress(self) -> Progress | None:
        """Load the progress that the workflow has published; None if it cannot be loaded."""
        whole = await self._load_memo_progress(self.name)
        if whole is None or whole.parts < 2:
            return whole
        names = (f"{self.name}/{shard}" for shard in range(whole.parts))
        loaded = await asyncio.gather(*map(self._load_memo_progress, names))
        shards = [progress for progress in loaded if progress is not None]
        # The shards' own figures are newer; if one is missing, the batch's last sum is better.
        return _merge_shards(whole, shards) if len(shards) == whole.parts else whole

    async def diagnose(self) -> Trouble | None:
        """Find what blocks the batch or some of its samples; None if all progress."""
        try:
            trouble = await diagnose_workflow(self._workflow(), SAMPLES_DIAGNOSIS)
        except Unreachable as error:
            return temporal_unreachable(error)
        return None if trouble and trouble.is_over else trouble

    async def pause(self) -> None:
        """Start no further samples; running ones finish. Raises as `resume`."""
        await self._signal("pause")

    async def resume(self) -> None:
        """Start samples again. Raises Conflict if it does not run, NotFound, Unreachable."""
        await self._signal("resume")

    async def update_limits(self, changes: LimitsUpdate, max_wait: float = 20.0) -> Progress:
        """Change concurrency and limits while it runs.

        Raises Conflict if it does not run, Invalid, NotFound, Unreachable, and TimedOut: the change
        may still take effect then.
        """
        hint = "Start one with `perdure dev` or `perdure worker`; it comes into force then."
        try:
            async with limit_update("change", max_wait, hint):
                progress: Progress = await self.handle.execute_update(
                    "retune", changes, result_type=Progress
                )
                return progress
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

    async def _load_memo_progress(self, name: str) -> Progress | None:
        """Load the progress in the memo of a batch or a shard; None before its first step."""
        workflow = self._workflow(name)
        try:
            description = await workflow.describe()
        except Unreachable:
            return None
        memo = description.workflow_execution_info.memo.fields if description else {}
        if PROGRESS_MEMO not in memo:
            return None
        converter = workflow.temporal.data_converter
        decoded: list[Progress] = await converter.decode([memo[PROGRESS_MEMO]], [Progress])
        return decoded[0]

    async def _count_unanswered(self) -> Progress:
        trouble = await diagnose_workflow(self._workflow(), OWN_DIAGNOSIS)
        untold = "No worker has told anything yet: the store has this"
        reason = trouble.sentence if trouble else untold
        progress = _with_reason(await self.count_progress(), reason)
        return progress.model_copy(update={"status": "running"})

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
        hint = f"`perdure batch retry {self.name}` runs what is left of it."
        return Conflict(f"The batch {self.name} is not running.", hint)

    def _require_temporal(self) -> Client:
        """Return the Temporal client. Raises Unreachable if there is none."""
        if self.temporal is None:
            raise Unreachable("Temporal does not answer.")
        return self.temporal

    def _workflow(self, name: str | None = None) -> BatchWorkflow:
        log = EventLog(self.folder.store, self.folder.user_id, NIL_CONVERSATION_ID)
        parts = (self._require_temporal(), log, self.task_queue, _without_search_attributes)
        return BatchWorkflow(*parts, batch=name or self.name)


async def _without_search_attributes() -> bool:
    return False


def _with_reason(progress: Progress, reason: str) -> Progress:
    return progress.model_copy(update={"reason": reason})


def _merge_shards(whole: Progress, shards: list[Progress]) -> Progress:
    counted = merge_progress(whole.name, shards)
    own = ("status", "concurrency", "cost", "tokens", "parts")
    changes = {name: getattr(whole, name) for name in own}
    if whole.status == "running" and counted.status == "paused":
        changes["status"] = "paused"
    changes["expected"] = max(whole.expected, counted.expected)
    changes["reason"] = whole.reason or counted.reason
    return counted.model_copy(update=changes)


def _describe_end(error: WorkflowFailureError) -> str:
    if isinstance(error.cause, TerminatedError):
        return "its workflow was terminated in Temporal"
    if isinstance(error.cause, CancelledError):
        return "its workflow was cancelled in Temporal"
    return f"its workflow failed: {getattr(error.cause, 'message', error.cause)}"


async def count_progress(folder: BatchFolder, record: BatchRecord) -> Progress:
    """Count the results of the batch's present samples. Raises Altered."""
    spec = record.spec
    progress = Progress(
        name=folder.name,
        expected=record.expected_attempts,
        concurrency=spec.concurrency,
        cost=spec.batch_limits.cost,
        tokens=spec.batch_limits.tokens,
    )
    ids = set(await list_sample_ids(folder, record))
    async for result in folder.read_results():
        if result.id in ids:
            progress = count_attempts(progress, result.attempts, spec.epochs)
    done = progress.missing == 0 and progress.failed == 0
    return progress.model_copy(update={"status": "finished" if done else "stopped"})
