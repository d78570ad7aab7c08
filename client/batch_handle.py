"""A batch that has been started: where it stands, and what it is told."""

import asyncio
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from temporalio.api.enums.v1 import WorkflowExecutionStatus
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionResponse
from temporalio.client import (
    Client,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.exceptions import CancelledError, TerminatedError
from temporalio.service import RPCError, RPCStatusCode

from client.batch_counts import counts
from client.diagnosis import Care, trouble_of
from client.errors import Conflict, Invalid, NotFound, TimedOut, Unreachable
from client.remote import Remote, is_alive
from client.trouble import Trouble
from evaluation.progress import MEMO, Progress, together
from evaluation.running import Retune
from storage.batches import BatchFolder, Kept
from storage.keys import is_conversation_id
from storage.log import EventLog

ANSWER = timedelta(seconds=5)
"""How long a workflow that runs may take to say where it stands."""

WAIT = 20.0
"""Seconds for a worker to take a change."""

AGAIN = 2.0
"""Seconds between two tries to reach Temporal."""

CHILDREN = 3
"""How many samples at work are looked at for why they do not go on."""

COMPLETED = WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_COMPLETED

NOBODY = str(UUID(int=0))
"""A conversation that there is not: a batch has no log of its own."""


@dataclass(frozen=True)
class BatchRemote(Remote):
    """The workflow of a batch, for all that looks at the workflow of a conversation."""

    batch: str = ""

    @property
    def workflow_id(self) -> str:
        return f"batch-{self.batch}"


@dataclass(frozen=True)
class BatchHandle:
    """`temporal` is None where it does not answer: then only the store can be asked.

    `attached` says that it was running already.
    """

    temporal: Client | None
    folder: BatchFolder
    task_queue: str
    attached: bool = False

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def workflow_id(self) -> str:
        return f"batch-{self.name}"

    @property
    def handle(self) -> WorkflowHandle[Any, Progress]:
        """Raises Unreachable."""
        return self._temporal().get_workflow_handle(self.workflow_id, result_type=Progress)

    async def kept(self) -> Kept:
        """What the batch is now. Raises NotFound, Altered, StoreUnavailable."""
        kept = await self.folder.kept()
        if kept is None:
            raise NotFound(f"There is no batch {self.name}.", "`perdure batch status` lists them.")
        return kept

    async def status(self) -> Progress:
        """As its workflow tells; where none answers, as the store's results do.

        Raises NotFound, and the errors of the store.
        """
        try:
            told = await self.described()
            if told is not None and is_alive(told):
                return await self.asked() or await self._unanswered(told)
            if told is not None and told.workflow_execution_info.status == COMPLETED:
                return await self.handle.result(rpc_timeout=ANSWER)
        except (Unreachable, RPCError):
            found = await self.counted()
            reason = "Temporal does not answer: this is what the store has"
            return found if found.status == "finished" else _because(found, reason)
        return await self.counted()

    async def counted(self) -> Progress:
        """As the store's results tell. Raises NotFound, and the errors of the store."""
        return await counts(self.folder, await self.kept())

    async def described(self) -> DescribeWorkflowExecutionResponse | None:
        """What Temporal knows of its workflow. Raises Unreachable."""
        return await self._remote().described()

    async def is_running(self) -> bool:
        """Whether its workflow runs, or waits for a worker. Raises Unreachable."""
        return is_alive(await self.described())

    async def asked(self) -> Progress | None:
        """Where it stands, as its workflow says; None where that does not answer."""
        told = await self._asked(self.workflow_id)
        if told is None or told.parts < 2:
            return told
        names = (f"{self.workflow_id}/{part}" for part in range(told.parts))
        parts = [one for one in await asyncio.gather(*map(self._asked, names)) if one is not None]
        # Its parts know better what runs there; without one of them the whole is as they told it.
        return _of_parts(told, parts) if len(parts) == told.parts else told

    async def trouble(self) -> Trouble | None:
        """Why it does not go on, or why some of its samples do not; None where all do."""
        try:
            told = await self.described()
            if not is_alive(told):
                return None
            assert told is not None, "what is alive is known"
            own = await trouble_of(self._remote(), told, Care(store=False, depth=0))
            return own or await self._of_samples(told)
        except Unreachable as error:
            return Trouble("temporal", f"{error} It goes on by itself when that does.")

    async def pause(self) -> None:
        """Start no further sample; those at work come to their end. Raises as `resume`."""
        await self._signal("pause")

    async def resume(self) -> None:
        """Raises Conflict where it does not run, NotFound, Unreachable."""
        await self._signal("resume")

    async def retune(self, changes: Retune, wait: float = WAIT) -> Progress:
        """Change it while it runs. Raises Conflict where it does not, Invalid, NotFound,
        Unreachable, and TimedOut: then it may still happen."""
        try:
            async with asyncio.timeout(wait):
                progress: Progress = await self.handle.execute_update(
                    "retune", changes, result_type=Progress
                )
                return progress
        except (TimeoutError, WorkflowUpdateRPCTimeoutOrCancelledError) as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise asyncio.CancelledError from error
            raise TimedOut(
                f"No worker took the change within {wait:g} s.",
                "Start one with `perdure dev` or `perdure worker`; it comes into force then.",
            ) from error
        except WorkflowUpdateFailedError as error:
            raise Invalid(getattr(error.cause, "message", str(error.cause))) from error
        except RPCError as error:
            raise await self._not_taken(error) from error

    async def finished(self) -> Progress:
        """Wait until it has come to its end, however often Temporal is away meanwhile.

        Where its workflow ended otherwise, it is counted by the store, and `reason` says why.
        """
        while True:
            try:
                return await self.handle.result()
            except WorkflowFailureError as error:
                return _because(await self.counted(), _why(error))
            except RPCError as error:
                if error.status is RPCStatusCode.NOT_FOUND:
                    reason = "Temporal does not know its workflow any more"
                    return _because(await self.counted(), reason)
            await asyncio.sleep(AGAIN)

    async def _asked(self, workflow_id: str) -> Progress | None:
        """What a workflow keeps beside it for everybody; nothing before its first step."""
        batch = workflow_id.removeprefix("batch-")
        try:
            told = await replace(self._remote(), batch=batch).described()
        except Unreachable:
            return None
        return await progress_in(self._temporal(), told) if told else None

    async def _unanswered(self, told: DescribeWorkflowExecutionResponse) -> Progress:
        found = await self.counted()
        trouble = await trouble_of(self._remote(), told, Care(store=False, depth=0))
        reason = (
            trouble.sentence if trouble else "No worker has told anything yet: the store has this"
        )
        return found.model_copy(update={"status": "running", "reason": reason})

    async def _of_samples(self, told: DescribeWorkflowExecutionResponse) -> Trouble | None:
        names = [child.workflow_id.removeprefix("conv-") for child in told.pending_children]
        for name in [one for one in names if is_conversation_id(one)][:CHILDREN]:
            log = EventLog(self.folder.store, self.folder.user_id, name)
            remote = Remote(self._temporal(), log, self.task_queue, _never)
            found = await remote.described()
            trouble = await trouble_of(remote, found, Care(store=False)) if found else None
            if trouble is not None and not trouble.is_over:
                return trouble._replace(sentence=f"The conversation {name}: {trouble.sentence}")
        return None

    async def _signal(self, name: str) -> None:
        try:
            await self.handle.signal(name)
        except RPCError as error:
            raise await self._not_taken(error) from error

    async def _not_taken(self, error: RPCError) -> Conflict | NotFound | Unreachable:
        if error.status is not RPCStatusCode.NOT_FOUND:
            return Unreachable(f"Temporal did not take it: {error.message}")
        try:
            await self.kept()
        except NotFound as unknown:
            return unknown
        return Conflict(
            f"The batch {self.name} is not running.",
            f"`perdure batch retry {self.name}` runs what is left of it.",
        )

    def _temporal(self) -> Client:
        """Raises Unreachable."""
        if self.temporal is None:
            raise Unreachable("Temporal does not answer.")
        return self.temporal

    def _remote(self) -> BatchRemote:
        log = EventLog(self.folder.store, self.folder.user_id, NOBODY)
        return BatchRemote(self._temporal(), log, self.task_queue, _never, batch=self.name)


async def _never() -> bool:
    return False


def _because(progress: Progress, reason: str) -> Progress:
    return progress.model_copy(update={"reason": reason})


def _of_parts(whole: Progress, parts: list[Progress]) -> Progress:
    counted = together(whole.name, parts)
    own = ("status", "reason", "concurrency", "cost", "tokens", "parts")
    kept = {name: getattr(whole, name) for name in own}
    expected = max(whole.expected, counted.expected)
    return counted.model_copy(
        update={**kept, "expected": expected, "reason": whole.reason or counted.reason}
    )


def _why(error: WorkflowFailureError) -> str:
    match error.cause:
        case TerminatedError():
            return "its workflow was terminated in Temporal"
        case CancelledError():
            return "its workflow was cancelled in Temporal"
        case cause:
            return f"its workflow failed: {getattr(cause, 'message', cause)}"


async def progress_in(temporal: Client, told: DescribeWorkflowExecutionResponse) -> Progress | None:
    """How far a batch is, as Temporal describes its workflow."""
    kept = told.workflow_execution_info.memo.fields.get(MEMO)
    if kept is None:
        return None
    [progress] = await temporal.data_converter.decode([kept], [Progress])
    found: Progress = progress
    return found
