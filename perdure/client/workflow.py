"""The Temporal workflow of one conversation, started again if it has ended."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from temporalio.client import (
    Client,
    WithStartWorkflowOperation,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.exceptions import ApplicationError, WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from perdure.agent.code import with_code
from perdure.agent.loop.inbox import InboxItem, StateNote
from perdure.agent.loop.start import MAX_RUN_EVENTS, ConversationStatus, Start
from perdure.agent.spec import Agent
from perdure.client.access import require_access
from perdure.client.address import WorkflowAddress
from perdure.client.description import Description, describe_workflow, is_running, is_working
from perdure.errors import ClientError, Conflict, Forbidden, Invalid, TimedOut, Unreachable
from perdure.storage.granted_store import GrantedStore
from perdure.storage.keys import LAST_SEQ, conversation_prefix
from perdure.storage.log.event_log import EventLog
from perdure.temporal.actor import act_as
from perdure.temporal.connect import DOCTOR_HINT, translate_rpc_errors
from perdure.temporal.fairness import user_priority
from perdure.temporal.names import conversation_id_of
from perdure.temporal.register_attributes import initial_attributes
from perdure.temporal.timeouts import TASK_TIMEOUT

QUERY_TIMEOUT = timedelta(seconds=3)
"""The time within which a running workflow must answer a query."""

MAX_SUMMARY_CHARS = 100
"""Characters of a title in the Temporal UI's list of workflows."""

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
    address: WorkflowAddress
    has_search_attributes: Callable[[], Awaitable[bool]]
    """Tells whether Temporal knows our search attributes."""
    store_address: str | None = None
    model_queues: Mapping[str, str] | None = None
    """The task queues of rate-limited models, by model name."""
    code_folder: str | None = None
    """The folder of the client's own modules."""
    session_limit: int | None = None
    """The number of its user's conversations that may work at once; None if it does not count."""

    @property
    def workflow_id(self) -> str:
        """The id under which it was found last; see `WorkflowAddress`."""
        return self.address.workflow_id

    @property
    def acting(self) -> Client:
        """The client whose requests say who makes them: the user who has the conversation here."""
        store = self.log.store
        actor = store.user_id if isinstance(store, GrantedStore) else self.log.user_id
        return act_as(self.temporal, actor)

    @property
    def handle(self) -> WorkflowHandle[object, ConversationStatus]:
        return self.temporal.get_workflow_handle(self.workflow_id, result_type=ConversationStatus)

    def child(self, workflow_id: str) -> "ConversationWorkflow":
        """Return the workflow of another conversation of the same user."""
        return replace(
            self,
            log=EventLog(self.log.store, self.log.user_id, conversation_id_of(workflow_id)),
            address=WorkflowAddress(self.log.user_id, workflow_id),
        )

    async def describe(self) -> Description | None:
        """Describe the workflow; None if Temporal does not know it.

        Raises Unreachable, and NotFound without a grant for another user's.
        """
        await require_access(self.log.store, "read")
        workflow_id = await self.address.find(self.temporal)
        if workflow_id is None:
            return None
        return await describe_workflow(self.temporal, workflow_id)

    async def is_running(self) -> bool:
        """Tell whether the workflow runs or waits for a worker. Raises Unreachable."""
        return is_running(await self.describe())

    async def query_status(self) -> ConversationStatus | None:
        """Query the status of the conversation; None if the workflow does not answer."""
        await require_access(self.log.store, "read")
        # The SDK raises ValueError if an operator has paused the workflow in Temporal.
        unanswered = (RPCError, WorkflowFailureError, WorkflowQueryFailedError, ValueError)
        with contextlib.suppress(*unanswered, Unreachable):
            if await self.address.find(self.temporal) is None:
                return None
            status: ConversationStatus = await self.handle.query(
                "status", result_type=ConversationStatus, rpc_timeout=QUERY_TIMEOUT
            )
            return status
        return None

    async def has_news(self, next_seq: int) -> bool | None:
        """Tell whether more is or will be recorded than the log's slots before `next_seq`.

        A message that Temporal has taken is news until it is in the log. None if nobody can tell.
        """
        try:
            description = await self.describe()
        except Unreachable:
            return None
        if not is_working(description):  # the events may have come since the caller read
            return next_seq <= LAST_SEQ and await self.log.find(next_seq) is not None
        status = await self.query_status()
        return None if status is None else (status.waiting > 0 or status.next_seq > next_seq)

    async def signal(self, name: str) -> None:
        """Signal the workflow. Raises Conflict if it has ended, Unreachable."""
        await require_access(self.log.store, "write")
        message = f"The conversation {self.log.conversation_id} is not running."
        if await self.address.find(self.temporal) is None:
            raise Conflict(message)
        with translate_rpc_errors(f"did not take the {name}"):
            try:
                await self.acting.get_workflow_handle(self.workflow_id).signal(name)
            except RPCError as error:
                if error.status is not RPCStatusCode.NOT_FOUND:
                    raise
                raise Conflict(message) from error

    async def signal_with_start(
        self,
        name: str,
        args: list[Any],
        spec: Agent | None = None,
        title: str | None = None,
        notes: tuple[StateNote, ...] = (),
    ) -> None:
        """Signal the workflow, and start it if it does not run. Raises Unreachable.

        A workflow that is started records the `notes` before anything else.
        """
        more = {"start_signal": name, "start_signal_args": args}
        await self._start(name, spec, title, notes, **more)

    async def begin(self, spec: Agent, notes: tuple[StateNote, ...] = ()) -> None:
        """Start the workflow of a conversation that waits for its first message.

        Does nothing if it runs already. Raises Unreachable.
        """
        policy = WorkflowIDConflictPolicy.USE_EXISTING
        await self._start("conversation", spec, None, notes, id_conflict_policy=policy)

    async def start(self, title: str | None = None) -> bool:
        """Start the workflow from its log; return False if it runs already. Raises Unreachable."""
        policy = WorkflowIDConflictPolicy.FAIL
        try:
            await self._start("conversation", None, title, (), id_conflict_policy=policy)
        except WorkflowAlreadyStartedError:
            return False
        return True

    async def replace(
        self, items: Sequence[InboxItem], title: str | None = None, spec: Agent | None = None
    ) -> None:
        """Start the workflow from its log in place of one that runs; hand it the items.

        A conversation without a log begins with the `spec`. Raises Unreachable.
        """
        policy = WorkflowIDConflictPolicy.TERMINATE_EXISTING
        await self._start("conversation", spec, title, tuple(items), id_conflict_policy=policy)

    async def _start(
        self,
        name: str,
        spec: Agent | None,
        title: str | None,
        notes: tuple[InboxItem, ...],
        **more: Any,
    ) -> None:
        more |= await self._start_options(spec, title, notes, "start_signal" in more)
        with translate_rpc_errors(f"did not take the {name.removeprefix('send_')}"):
            await self.acting.start_workflow("Conversation", **more)

    async def update_with_start(
        self, name: str, argument: Any, result: type[T], max_wait: float, title: str | None = None
    ) -> T:
        """Send an update, start the workflow if it does not run, and return the answer.

        Raises Invalid and Conflict if the workflow refuses, Unreachable, and TimedOut after
        `max_wait` seconds: the update may still take effect then.
        """
        operation = WithStartWorkflowOperation[object, ConversationStatus](
            "Conversation",
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            **await self._start_options(None, title),
        )
        start_task = asyncio.ensure_future(operation.workflow_handle())
        start_task.add_done_callback(_retrieve_exception)
        try:
            async with limit_update(name, max_wait, START_WORKER_HINT):
                answer: T = await self.acting.execute_update_with_start_workflow(
                    name, argument, start_workflow_operation=operation, result_type=result
                )
                return answer
        except WorkflowUpdateFailedError as error:
            raise _to_client_error(error) from error
        except RPCError as error:
            message = f"Temporal did not take the {name}: {error.message}"
            raise Unreachable(message, DOCTOR_HINT) from error
        finally:
            start_task.cancel()

    async def _start_options(
        self,
        spec: Agent | None,
        title: str | None,
        notes: tuple[InboxItem, ...] = (),
        has_message: bool = True,
    ) -> dict[str, Any]:
        """Build the arguments of every start. Raises Conflict, Unreachable."""
        await require_access(self.log.store, "write")
        workflow_id = await self.address.find(self.temporal)
        if workflow_id is None:
            message = f"Temporal has a workflow {self.address.own_id} of an earlier version."
            raise Conflict(message, "Use another id, or wait until it has ended.")
        start = Start(
            conversation_id=self.log.conversation_id,
            user_id=self.log.user_id,
            spec=with_code(spec, self.code_folder) if spec else None,
            searchable=await self.has_search_attributes(),
            # One that counts runs once it is admitted.
            starts_running=spec is not None and has_message and self.session_limit is None,
            inbox=notes,
            model_queues=dict(self.model_queues) if self.model_queues else None,
            max_run_events=MAX_RUN_EVENTS,
            session_limit=self.session_limit,
        )
        return {
            "args": [start],
            "id": workflow_id,
            "task_queue": self.task_queue,
            "task_timeout": TASK_TIMEOUT,
            "priority": user_priority(start.user_id),
            "search_attributes": initial_attributes(start, datetime.now(UTC)),
            "static_summary": _shorten_title(title),
            "static_details": self._static_details(),
        }

    def _static_details(self) -> str:
        """Format the workflow's details in the Temporal UI, as markdown."""
        prefix = conversation_prefix(self.log.user_id, self.log.conversation_id)
        at = f"{self.store_address.rstrip('/')}/{prefix}" if self.store_address else prefix
        return f"- conversation: `{self.log.conversation_id}`\n- log: `{at}`"


def _shorten_title(title: str | None) -> str | None:
    words = " ".join((title or "").split())
    short = f"{words[: MAX_SUMMARY_CHARS - 3]}..." if len(words) > MAX_SUMMARY_CHARS else words
    return short or None


@contextlib.asynccontextmanager
async def limit_update(name: str, max_wait: float, hint: str) -> AsyncIterator[None]:
    """Raise TimedOut if no worker takes an update within `max_wait` seconds."""
    try:
        async with asyncio.timeout(max_wait):
            yield
    except (TimeoutError, WorkflowUpdateRPCTimeoutOrCancelledError) as error:
        # The SDK raises one error for a cancellation, for our own time limit and the server's.
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError from error
        raise TimedOut(f"No worker took the {name} within {max_wait:g} s.", hint) from error


def _retrieve_exception(task: asyncio.Future[Any]) -> None:
    """Retrieve the failure that the SDK reports twice: Python warns of an unretrieved one."""
    if not task.cancelled():
        task.exception()


def _to_client_error(error: WorkflowUpdateFailedError) -> ClientError:
    cause = error.cause
    if not isinstance(cause, ApplicationError):
        return Invalid(str(cause))
    if cause.type == "Forbidden":
        return Forbidden(cause.message)
    is_invalid = cause.type in ("BadMessage", "BadRequest")
    return Invalid(cause.message) if is_invalid else Conflict(cause.message)
