"""The handle of a batch: its progress, its diagnosis and its control."""

import asyncio
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from temporalio.api.enums.v1 import WorkflowExecutionStatus
from temporalio.client import (
    Client,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowUpdateFailedError,
)
from temporalio.service import RPCError, RPCStatusCode

from perdure.client import sharing
from perdure.client.access import require_access, require_owner
from perdure.client.address import WorkflowAddress
from perdure.client.batch.progress import count_progress, describe_end, merge_shards, with_reason
from perdure.client.description import Description, is_running
from perdure.client.diagnosis.diagnose import DiagnosisOptions, diagnose_workflow
from perdure.client.diagnosis.trouble import sample_trouble
from perdure.client.ids import NIL_CONVERSATION_ID
from perdure.client.trouble import Trouble, temporal_unreachable
from perdure.client.workflow import ConversationWorkflow, limit_update
from perdure.errors import Conflict, Forbidden, Invalid, NotFound, Unreachable
from perdure.evaluation.messages import LimitsUpdate
from perdure.evaluation.progress import PROGRESS_MEMO, Progress
from perdure.storage.batches import BatchFolder, BatchRecord
from perdure.storage.granted_store import GrantedStore
from perdure.storage.grants import Access, Grant, Shareable, list_grants
from perdure.storage.log.event_log import EventLog

RESULT_TIMEOUT = timedelta(seconds=5)
"""The time within which Temporal must return the result of a batch."""

RECONNECT_INTERVAL = 2.0
"""Seconds between two attempts to reach Temporal."""

OWN_DIAGNOSIS = DiagnosisOptions(check_store=False, depth=0)
SAMPLES_DIAGNOSIS = OWN_DIAGNOSIS._replace(depth=3, describe_child=sample_trouble)

WORKFLOW_COMPLETED = WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_COMPLETED


@dataclass(frozen=True)
class BatchHandle:
    """A batch, whether it runs or not."""

    temporal: Client | None
    """None if Temporal is unreachable: only the store can be read then."""
    folder: BatchFolder
    task_queue: str
    address: WorkflowAddress
    attached: bool = False
    """The batch was running already when `run` was called."""

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def workflow_id(self) -> str:
        """The id under which it was found last; see `WorkflowAddress`."""
        return self.address.workflow_id

    @property
    def handle(self) -> WorkflowHandle[Any, Progress]:
        """The handle of the workflow. Raises Unreachable, and Forbidden for another user's."""
        if isinstance(self.folder.store, GrantedStore):
            raise Forbidden(f"Only {self.folder.user_id} has the handle of this workflow.")
        return self._handle()

    async def find_handle(self) -> WorkflowHandle[Any, Progress]:
        """Find the workflow, and return its handle.

        Raises Unreachable, NotFound, Conflict, and Forbidden for another user's.
        """
        await require_owner(self.folder.store)
        return await self._find_handle()

    async def load_record(self) -> BatchRecord:
        """Load the record of the batch. Raises NotFound, Altered, StoreUnavailable."""
        record = await self.folder.load()
        if record is None:
            raise NotFound.for_batch(self.name)
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
                return await self._handle().result(rpc_timeout=RESULT_TIMEOUT)
        except (Unreachable, RPCError):
            progress = await self.count_progress()
            reason = "Temporal does not answer: this is what the store has"
            return progress if progress.status == "finished" else with_reason(progress, reason)
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
        whole = await self._load_memo_progress(self._workflow())
        if whole is None or whole.parts < 2:
            return whole
        shards_of = (self._shard(number) for number in range(whole.parts))
        loaded = await asyncio.gather(*map(self._load_memo_progress, shards_of))
        shards = [progress for progress in loaded if progress is not None]
        # The shards' own figures are newer; if one is missing, the batch's last sum is better.
        return merge_shards(whole, shards) if len(shards) == whole.parts else whole

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
                await require_access(self.folder.store, "write")
                handle = await self._find_handle()
                progress: Progress = await handle.execute_update(
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
        self._require_temporal()
        while True:
            try:
                await require_access(self.folder.store, "read")
                progress = await (await self._find_handle()).result()
                await require_access(self.folder.store, "read")
                return progress
            except Unreachable:
                pass
            except WorkflowFailureError as error:
                return with_reason(await self.count_progress(), describe_end(error))
            except RPCError as error:
                if error.status is RPCStatusCode.NOT_FOUND:
                    reason = "Temporal does not know its workflow any more"
                    return with_reason(await self.count_progress(), reason)
            await asyncio.sleep(RECONNECT_INTERVAL)

    async def grant(self, user_id: str, access: Access = "read") -> None:
        """Let another user read the batch and its conversations, or also steer the batch.

        Raises NotFound, Forbidden for another user's batch, and Invalid for a bad user id.
        """
        await sharing.grant(self.folder.store, await self._require_own(), user_id, access)

    async def revoke(self, user_id: str) -> None:
        """Take the grant of a user back, at once. Raises as `grant`."""
        await sharing.revoke(self.folder.store, await self._require_own(), user_id)

    async def grants(self) -> list[Grant]:
        """List the grants to other users. Raises NotFound, and Forbidden for another's."""
        return await list_grants(self.folder.store, await self._require_own())

    async def _require_own(self) -> Shareable:
        """Return what is shared, which exists and is the client's own. Raises NotFound."""
        await require_owner(self.folder.store)
        await self.load_record()
        return Shareable("batch", self.folder.user_id, self.name)

    async def _load_memo_progress(self, workflow: ConversationWorkflow) -> Progress | None:
        """Load the progress in the memo of a batch or a shard; None before its first step."""
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
        progress = with_reason(await self.count_progress(), reason)
        return progress.model_copy(update={"status": "running"})

    async def _signal(self, name: str) -> None:
        await require_access(self.folder.store, "write")
        try:
            await (await self._find_handle()).signal(name)
        except RPCError as error:
            raise await self._to_client_error(error) from error

    async def _to_client_error(self, error: RPCError) -> Conflict | NotFound | Unreachable:
        if error.status is not RPCStatusCode.NOT_FOUND:
            return Unreachable(f"Temporal did not take it: {error.message}")
        try:
            await self.load_record()
        except NotFound as unknown:
            return unknown
        return self._not_running()

    def _not_running(self) -> Conflict:
        hint = f"`perdure batch retry {self.name}` runs what is left of it."
        return Conflict(f"The batch {self.name} is not running.", hint)

    def _require_temporal(self) -> Client:
        """Return the Temporal client. Raises Unreachable if there is none."""
        if self.temporal is None:
            raise Unreachable("Temporal does not answer.")
        return self.temporal

    def _workflow(self) -> ConversationWorkflow:
        """Return the workflow of the batch, which has no log of its own."""
        log = EventLog(self.folder.store, self.folder.user_id, NIL_CONVERSATION_ID)
        parts = (self._require_temporal(), log, self.task_queue, self.address)
        return ConversationWorkflow(*parts, _without_search_attributes)

    def _handle(self) -> WorkflowHandle[Any, Progress]:
        return self._require_temporal().get_workflow_handle(self.workflow_id, result_type=Progress)

    async def _find_handle(self) -> WorkflowHandle[Any, Progress]:
        """Find the workflow. Raises Unreachable, NotFound and Conflict."""
        if await self.address.find(self._require_temporal()) is None:
            await self.load_record()
            raise self._not_running()
        return self._handle()

    def _shard(self, number: int) -> ConversationWorkflow:
        address = WorkflowAddress(self.folder.user_id, f"{self.workflow_id}/{number}")
        return replace(self._workflow(), address=address)


async def _without_search_attributes() -> bool:
    return False
