"""The workflow of one conversation, reached through Temporal; begun again where it has ended."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import WorkflowExecutionStatus
from temporalio.api.workflowservice.v1 import (
    DescribeWorkflowExecutionRequest,
    DescribeWorkflowExecutionResponse,
)
from temporalio.client import (
    Client,
    WithStartWorkflowOperation,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.exceptions import ApplicationError, WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from agent.spec import Spec
from agent.start import Snapshot, Start
from client.errors import ClientError, Conflict, Invalid, TimedOut, Unreachable
from client.search import begun
from storage.keys import conversation_prefix
from storage.log import EventLog

WORKFLOW = "Conversation"

TASK_TIMEOUT = timedelta(seconds=5)
"""How soon a workflow task goes to another worker when its own is lost."""

ANSWER = timedelta(seconds=3)
"""How long a running workflow may take to say where it stands."""

LIMIT = timedelta(seconds=10)
"""How long Temporal itself may take to say whether it knows a workflow."""

SUMMARY = 100
"""Characters of a title that the Temporal UI shows in its list."""

ALIVE = (
    WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_RUNNING,
    WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_PAUSED,
)

HINT = "Start a worker with `perdure dev` or `perdure worker`; the conversation goes on by itself."

T = TypeVar("T")


@dataclass(frozen=True)
class Remote:
    """`searchable` tells whether Temporal knows our search attributes; `store` is its address.

    `lanes` are the queues of limited models, by the model's name.
    """

    temporal: Client
    log: EventLog
    task_queue: str
    searchable: Callable[[], Awaitable[bool]]
    store: str | None = None
    lanes: Mapping[str, str] | None = None

    @property
    def workflow_id(self) -> str:
        return f"conv-{self.log.conversation_id}"

    @property
    def handle(self) -> WorkflowHandle[object, Snapshot]:
        return self.temporal.get_workflow_handle(self.workflow_id, result_type=Snapshot)

    async def described(self) -> DescribeWorkflowExecutionResponse | None:
        """What Temporal knows of it; nothing where there is no such workflow.

        Asked for as it comes: the SDK's own description fails on a workflow that an operator has
        paused in Temporal. Raises Unreachable.
        """
        request = DescribeWorkflowExecutionRequest(
            namespace=self.temporal.namespace,
            execution=WorkflowExecution(workflow_id=self.workflow_id),
        )
        service = self.temporal.workflow_service
        try:
            return await service.describe_workflow_execution(request, timeout=LIMIT)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return None
            raise Unreachable(f"Temporal does not say where it stands: {error.message}") from error

    async def is_alive(self) -> bool:
        """Whether the workflow runs, or waits for a worker. Raises Unreachable."""
        return is_alive(await self.described())

    async def asked(self) -> Snapshot | None:
        """Where it stands, as the workflow says itself; None where it does not answer."""
        # ValueError is how the SDK says that an operator has paused the workflow in Temporal.
        with contextlib.suppress(RPCError, WorkflowFailureError, ValueError):
            told: Snapshot = await self.handle.query(
                "status", result_type=Snapshot, rpc_timeout=ANSWER
            )
            return told
        return None

    async def signal(self, name: str) -> None:
        """Signal the workflow. Raises Conflict where it has ended, Unreachable."""
        try:
            await self.handle.signal(name)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                what = f"The conversation {self.log.conversation_id} is not running."
                raise Conflict(what) from error
            raise _not_taken(name, error) from error

    async def signal_or_begin(
        self, name: str, args: list[Any], spec: Spec | None = None, title: str | None = None
    ) -> None:
        """Signal the workflow; one that has ended, or never was, is begun. Raises Unreachable."""
        start = await self._start(spec)
        try:
            await self.temporal.start_workflow(
                WORKFLOW,
                start,
                start_signal=name,
                start_signal_args=args,
                **self._beginning(start, title),
            )
        except RPCError as error:
            raise _not_taken(name, error) from error

    async def begin(self, title: str | None = None) -> bool:
        """Begin the workflow, to go on from its log; false where it runs. Raises Unreachable."""
        start = await self._start(None)
        try:
            await self.temporal.start_workflow(
                WORKFLOW,
                start,
                id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                **self._beginning(start, title),
            )
        except WorkflowAlreadyStartedError:
            return False
        except RPCError as error:
            raise _not_taken("conversation", error) from error
        return True

    async def update_or_begin(
        self,
        name: str,
        sent: Any,
        result: type[T],
        wait: float,
        title: str | None = None,
    ) -> T:
        """What the workflow answers; one that has ended is begun again.

        Raises Invalid and Conflict where it refuses, Unreachable, and TimedOut after `wait`
        seconds: then it may still happen.
        """
        start = await self._start(None)
        begin: WithStartWorkflowOperation[object, Snapshot] = WithStartWorkflowOperation(
            WORKFLOW,
            start,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            **self._beginning(start, title),
        )
        begun_by = asyncio.ensure_future(begin.workflow_handle())
        begun_by.add_done_callback(_looked_at)
        try:
            async with asyncio.timeout(wait):
                answer: T = await self.temporal.execute_update_with_start_workflow(
                    name, sent, start_workflow_operation=begin, result_type=result
                )
                return answer
        except (TimeoutError, WorkflowUpdateRPCTimeoutOrCancelledError) as error:
            _unless_cancelled(error)
            raise TimedOut(f"No worker took the {name} within {wait:g} s.", HINT) from error
        except WorkflowUpdateFailedError as error:
            raise _refused(error) from error
        except RPCError as error:
            raise _not_taken(name, error) from error
        finally:
            begun_by.cancel()

    def _beginning(self, start: Start, title: str | None) -> dict[str, Any]:
        """What every beginning of the workflow is told beside its input."""
        return {
            "id": self.workflow_id,
            "task_queue": self.task_queue,
            "task_timeout": TASK_TIMEOUT,
            "search_attributes": begun(start),
            "static_summary": _one_line(title),
            "static_details": self._details(),
        }

    async def _start(self, spec: Spec | None) -> Start:
        return Start(
            conversation_id=self.log.conversation_id,
            user_id=self.log.user_id,
            spec=spec,
            searchable=await self.searchable(),
            lanes=dict(self.lanes) if self.lanes else None,
        )

    def _details(self) -> str:
        """What the Temporal UI shows beside the workflow from its first moment on, as markdown."""
        prefix = conversation_prefix(self.log.user_id, self.log.conversation_id)
        at = f"{self.store.rstrip('/')}/{prefix}" if self.store else prefix
        return f"- conversation: `{self.log.conversation_id}`\n- log: `{at}`"


def is_alive(told: DescribeWorkflowExecutionResponse | None) -> bool:
    """Whether a workflow that Temporal describes runs, or waits for a worker."""
    return told is not None and told.workflow_execution_info.status in ALIVE


def _one_line(title: str | None) -> str | None:
    words = " ".join((title or "").split())
    return (words if len(words) <= SUMMARY else f"{words[: SUMMARY - 3]}...") or None


def _unless_cancelled(error: Exception) -> None:
    """Raises CancelledError where the caller was cancelled.

    The SDK has one error for that, for our own time limit, and for a server that gave up waiting.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError from error


def _looked_at(task: asyncio.Future[Any]) -> None:
    """The SDK tells of a failure twice, and Python complains of the one that nobody asks for."""
    if not task.cancelled():
        task.exception()


def _not_taken(name: str, error: RPCError) -> Unreachable:
    return Unreachable(f"Temporal did not take the {name}: {error.message}")


def _refused(error: WorkflowUpdateFailedError) -> ClientError:
    cause = error.cause
    if not isinstance(cause, ApplicationError):
        return Invalid(str(cause))
    return Conflict(cause.message) if cause.type == "Closed" else Invalid(cause.message)
