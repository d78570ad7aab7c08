"""The Temporal workflow of one conversation, started again if it has ended."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import WorkflowExecutionStatus
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest
from temporalio.api.workflowservice.v1 import (
    DescribeWorkflowExecutionResponse as WorkflowDescription,
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

from perdure.agent.loop.start import ConversationStatus, Start
from perdure.agent.spec import Agent
from perdure.errors import ClientError, Conflict, Invalid, TimedOut, Unreachable
from perdure.storage.keys import conversation_prefix
from perdure.storage.log.event_log import EventLog
from perdure.temporal.names import conversation_workflow_id
from perdure.temporal.register_attributes import initial_attributes

CONVERSATION_WORKFLOW = "Conversation"

WORKFLOW_TASK_TIMEOUT = timedelta(seconds=5)
"""The time after which Temporal gives a workflow task to another worker."""

QUERY_TIMEOUT = timedelta(seconds=3)
"""The time within which a running workflow must answer a query."""

RPC_TIMEOUT = timedelta(seconds=10)
"""The time within which the Temporal server must answer a request."""

MAX_SUMMARY_CHARS = 100
"""Characters of a title in the Temporal UI's list of workflows."""

RUNNING_STATUSES = (
    WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_RUNNING,
    WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_PAUSED,
)

START_WORKER_HINT = (
    "Start a worker with `perdure dev` or `perdure worker`; the conversation goes on by itself."
)

T = TypeVar("T")


@dataclass(frozen=True)
class ConversationWorkflow:
    """Start, signal, query and update the workflow of one conversation."""

    temporal: Client
    log: EventLog
    task_queue: str
    has_search_attributes: Callable[[], Awaitable[bool]]
    """Tells whether Temporal knows our search attributes."""
    store_address: str | None = None
    model_queues: Mapping[str, str] | None = None
    """The task queues of rate-limited models, by model name."""

    @property
    def workflow_id(self) -> str:
        return conversation_workflow_id(self.log.conversation_id)

    @property
    def handle(self) -> WorkflowHandle[object, ConversationStatus]:
        return self.temporal.get_workflow_handle(self.workflow_id, result_type=ConversationStatus)

    async def describe(self) -> WorkflowDescription | None:
        """Describe the workflow; None if Temporal does not know it.

        The raw request is sent because the SDK's `describe` fails on a workflow that an operator
        has paused in Temporal. Raises Unreachable.
        """
        request = DescribeWorkflowExecutionRequest(
            namespace=self.temporal.namespace,
            execution=WorkflowExecution(workflow_id=self.workflow_id),
        )
        service = self.temporal.workflow_service
        try:
            return await service.describe_workflow_execution(request, timeout=RPC_TIMEOUT)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return None
            raise Unreachable(f"Temporal does not say where it stands: {error.message}") from error

    async def is_running(self) -> bool:
        """Tell whether the workflow runs or waits for a worker. Raises Unreachable."""
        return is_running(await self.describe())

    async def query_status(self) -> ConversationStatus | None:
        """Query the status of the conversation; None if the workflow does not answer."""
        # The SDK raises ValueError if an operator has paused the workflow in Temporal.
        with contextlib.suppress(RPCError, WorkflowFailureError, ValueError):
            status: ConversationStatus = await self.handle.query(
                "status", result_type=ConversationStatus, rpc_timeout=QUERY_TIMEOUT
            )
            return status
        return None

    async def signal(self, name: str) -> None:
        """Signal the workflow. Raises Conflict if it has ended, Unreachable."""
        try:
            await self.handle.signal(name)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                what = f"The conversation {self.log.conversation_id} is not running."
                raise Conflict(what) from error
            raise _to_unreachable(name, error) from error

    async def signal_with_start(
        self, name: str, args: list[Any], spec: Agent | None = None, title: str | None = None
    ) -> None:
        """Signal the workflow, and start it if it does not run. Raises Unreachable."""
        start = await self._build_start(spec)
        try:
            await self.temporal.start_workflow(
                CONVERSATION_WORKFLOW,
                start,
                start_signal=name,
                start_signal_args=args,
                **self._start_options(start, title),
            )
        except RPCError as error:
            raise _to_unreachable(name, error) from error

    async def start(self, title: str | None = None) -> bool:
        """Start the workflow from its log; return False if it runs already. Raises Unreachable."""
        start = await self._build_start(None)
        try:
            await self.temporal.start_workflow(
                CONVERSATION_WORKFLOW,
                start,
                id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                **self._start_options(start, title),
            )
        except WorkflowAlreadyStartedError:
            return False
        except RPCError as error:
            raise _to_unreachable("conversation", error) from error
        return True

    async def update_with_start(
        self, name: str, argument: Any, result: type[T], max_wait: float, title: str | None = None
    ) -> T:
        """Send an update, start the workflow if it does not run, and return the answer.

        Raises Invalid and Conflict if the workflow refuses, Unreachable, and TimedOut after
        `max_wait` seconds: the update may still take effect then.
        """
        start = await self._build_start(None)
        operation: WithStartWorkflowOperation[object, ConversationStatus] = (
            WithStartWorkflowOperation(
                CONVERSATION_WORKFLOW,
                start,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                **self._start_options(start, title),
            )
        )
        start_task = asyncio.ensure_future(operation.workflow_handle())
        start_task.add_done_callback(_retrieve_exception)
        try:
            async with asyncio.timeout(max_wait):
                answer: T = await self.temporal.execute_update_with_start_workflow(
                    name, argument, start_workflow_operation=operation, result_type=result
                )
                return answer
        except (TimeoutError, WorkflowUpdateRPCTimeoutOrCancelledError) as error:
            raise_if_cancelled(error)
            raise TimedOut(
                f"No worker took the {name} within {max_wait:g} s.", START_WORKER_HINT
            ) from error
        except WorkflowUpdateFailedError as error:
            raise _to_client_error(error) from error
        except RPCError as error:
            raise _to_unreachable(name, error) from error
        finally:
            start_task.cancel()

    def _start_options(self, start: Start, title: str | None) -> dict[str, Any]:
        """Build the arguments of every start, besides the workflow's input."""
        return {
            "id": self.workflow_id,
            "task_queue": self.task_queue,
            "task_timeout": WORKFLOW_TASK_TIMEOUT,
            "search_attributes": initial_attributes(start),
            "static_summary": _shorten_title(title),
            "static_details": self._static_details(),
        }

    async def _build_start(self, spec: Agent | None) -> Start:
        return Start(
            conversation_id=self.log.conversation_id,
            user_id=self.log.user_id,
            spec=spec,
            searchable=await self.has_search_attributes(),
            model_queues=dict(self.model_queues) if self.model_queues else None,
        )

    def _static_details(self) -> str:
        """Format the workflow's details in the Temporal UI, as markdown."""
        prefix = conversation_prefix(self.log.user_id, self.log.conversation_id)
        at = f"{self.store_address.rstrip('/')}/{prefix}" if self.store_address else prefix
        return f"- conversation: `{self.log.conversation_id}`\n- log: `{at}`"


def is_running(description: WorkflowDescription | None) -> bool:
    """Tell whether a described workflow runs or waits for a worker."""
    return (
        description is not None and description.workflow_execution_info.status in RUNNING_STATUSES
    )


def _shorten_title(title: str | None) -> str | None:
    words = " ".join((title or "").split())
    return (
        words if len(words) <= MAX_SUMMARY_CHARS else f"{words[: MAX_SUMMARY_CHARS - 3]}..."
    ) or None


def raise_if_cancelled(error: Exception) -> None:
    """Raise CancelledError if the current task was cancelled.

    The SDK raises one error for a cancellation, for our own time limit and for the server's.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError from error


def _retrieve_exception(task: asyncio.Future[Any]) -> None:
    """Retrieve the failure that the SDK reports twice: Python warns of an unretrieved one."""
    if not task.cancelled():
        task.exception()


def _to_unreachable(name: str, error: RPCError) -> Unreachable:
    return Unreachable(f"Temporal did not take the {name}: {error.message}")


def _to_client_error(error: WorkflowUpdateFailedError) -> ClientError:
    cause = error.cause
    if not isinstance(cause, ApplicationError):
        return Invalid(str(cause))
    return Conflict(cause.message) if cause.type == "Closed" else Invalid(cause.message)
