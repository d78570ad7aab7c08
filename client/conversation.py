"""One conversation, as a program outside the workflow sees it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import timedelta

from temporalio.client import (
    Client,
    WithStartWorkflowOperation,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowUpdateFailedError,
)
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from agent.inbox import Said, fault
from agent.spec import Spec
from agent.start import Recorded, Snapshot, Start, snapshot
from agent.state import State, fold
from client.errors import Conflict, Invalid, NotFound, TimedOut, Unreachable
from events.entry import Entry
from events.projection import digest
from storage.log import EventLog
from storage.state import state_of

WORKFLOW = "Conversation"

TASK_TIMEOUT = timedelta(seconds=5)
"""How soon a workflow task goes to another worker when its own is lost."""

ANSWER = timedelta(seconds=3)
"""How long a running workflow may take to say where it stands before the log is asked."""


LIMIT = timedelta(seconds=10)
"""How long Temporal itself may take to say whether it knows a workflow."""


class Conversation:
    """Sends through Temporal, and reads the log: reading works with no worker and no server."""

    def __init__(self, log: EventLog, temporal: Client, task_queue: str) -> None:
        self.log = log
        self.id = log.conversation_id
        self.temporal = temporal
        self.task_queue = task_queue

    @property
    def workflow_id(self) -> str:
        return f"conv-{self.id}"

    @property
    def handle(self) -> WorkflowHandle[object, Snapshot]:
        return self.temporal.get_workflow_handle(self.workflow_id, result_type=Snapshot)

    async def start(self, text: str, spec: Spec, message_id: str | None = None) -> None:
        """Begin the conversation with a message; it is Temporal's when this returns.

        Raises Invalid, Unreachable.
        """
        await self._signal(_checked(text, message_id), spec)

    async def send(self, text: str, message_id: str | None = None) -> None:
        """Send a message; the conversation is opened again if its workflow has ended.

        Raises Invalid, NotFound, Conflict where the conversation is closed, Unreachable.
        """
        message = _checked(text, message_id)
        await self.must_be_open()
        await self._signal(message)

    async def submit(
        self, text: str, message_id: str | None = None, wait: float = 60.0
    ) -> Recorded:
        """Send a message, and wait until it is in the log.

        Raises what `send` raises, and TimedOut after `wait` seconds: then it may still arrive.
        """
        message = _checked(text, message_id)
        await self.must_be_open()
        begin: WithStartWorkflowOperation[object, Snapshot] = WithStartWorkflowOperation(
            WORKFLOW,
            Start(conversation_id=self.id, user_id=self.log.user_id),
            id=self.workflow_id,
            task_queue=self.task_queue,
            task_timeout=TASK_TIMEOUT,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        )
        try:
            async with asyncio.timeout(wait):
                recorded: Recorded = await self.temporal.execute_update_with_start_workflow(
                    "submit_message", message, start_workflow_operation=begin, result_type=Recorded
                )
                return recorded
        except TimeoutError as error:
            raise TimedOut(f"No worker took the message within {wait:g} s.", HINT) from error
        except WorkflowUpdateFailedError as error:
            raise _refused(error) from error
        except RPCError as error:
            raise Unreachable(f"Temporal did not take the message: {error.message}") from error

    async def pause(self) -> None:
        """Pause between two steps. Raises NotFound, Conflict where no workflow is running."""
        await self._ask("pause")

    async def resume(self) -> None:
        """Go on after a pause, an error or a limit."""
        await self.must_be_open()
        await self._signal_with_start("resume", [])

    async def close(self) -> None:
        """End the conversation for good; its log stays."""
        await self.must_be_open()
        await self._signal_with_start("close", [])

    async def state(self) -> State:
        """What the log tells. Raises NotFound."""
        state = await state_of(self.log)
        if state.next_seq == 0:
            raise self._not_found()
        return state

    def _not_found(self) -> NotFound:
        return NotFound(f"There is no conversation {self.id}.", "`perdure ls` lists them.")

    async def status(self) -> Snapshot:
        """Where it stands: asked of the workflow while it runs, else told by the log."""
        with contextlib.suppress(RPCError, WorkflowFailureError):
            told: Snapshot = await self.handle.query(
                "status", result_type=Snapshot, rpc_timeout=ANSWER
            )
            return told
        state = await state_of(self.log)
        if state.next_seq == 0 and not await self._waits():
            raise self._not_found()
        return snapshot(self.id, state)

    async def exists(self) -> bool:
        """Whether it has been started, be it that no worker has taken it up yet."""
        return await self.log.end() > 0 or await self._waits()

    async def events(self, after: int = -1) -> AsyncIterator[Entry]:
        """Every entry after slot `after`, and each new one as it is written; without end."""
        async for entry in self.log.tail(after):
            yield entry

    async def finished(self, message_id: str | None = None) -> State:
        """Wait until the agent's turn is over: the one that the message began, if one is named.

        Raises Conflict where the workflow ends in a failure.
        """
        rest = asyncio.ensure_future(self._at_rest(message_id))
        ended = asyncio.ensure_future(self.handle.result())
        try:
            await asyncio.wait({rest, ended}, return_when=asyncio.FIRST_COMPLETED)
            if ended.done() and (failure := ended.exception()) is not None and not rest.done():
                raise _ended(failure) from failure
            return await rest
        finally:
            rest.cancel()
            ended.cancel()

    async def _at_rest(self, message_id: str | None) -> State:
        state = await state_of(self.log)
        if _rests(state, message_id):
            return state
        async for entry in self.log.tail(state.next_seq - 1):
            state = fold(state, [digest(entry)])
            if _rests(state, message_id):
                return state
        raise AssertionError("a tail has no end")

    async def must_be_open(self) -> None:
        """Raises NotFound, and Conflict where the conversation is closed."""
        state = await state_of(self.log)
        if state.next_seq == 0 and not await self._waits():
            raise self._not_found()
        if state.status == "closed":
            raise Conflict(
                f"The conversation {self.id} is closed.", "Start another one with `perdure run`."
            )

    async def _waits(self) -> bool:
        """Whether Temporal has it and it runs, or waits for a worker."""
        try:
            told = await self.handle.describe(rpc_timeout=LIMIT)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return False
            raise Unreachable(f"Temporal does not say where it stands: {error.message}") from error
        return told.status is WorkflowExecutionStatus.RUNNING

    async def _signal(self, message: Said, spec: Spec | None = None) -> None:
        await self._signal_with_start("send_message", [message], spec)

    async def _signal_with_start(
        self, signal: str, args: list[Said], spec: Spec | None = None
    ) -> None:
        try:
            await self.temporal.start_workflow(
                WORKFLOW,
                Start(conversation_id=self.id, user_id=self.log.user_id, spec=spec),
                id=self.workflow_id,
                task_queue=self.task_queue,
                task_timeout=TASK_TIMEOUT,
                start_signal=signal,
                start_signal_args=args,
            )
        except RPCError as error:
            raise Unreachable(f"Temporal did not take the {signal}: {error.message}") from error

    async def _ask(self, signal: str) -> None:
        await self.must_be_open()
        try:
            await self.handle.signal(signal)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                raise Conflict(f"The conversation {self.id} is not running.") from error
            raise Unreachable(f"Temporal did not take the {signal}: {error.message}") from error


HINT = "Start a worker with `perdure dev` or `perdure worker`; the conversation goes on by itself."


def _rests(state: State, message_id: str | None) -> bool:
    heard = state.turn > 0 if message_id is None else message_id in state.seen
    return heard and state.at_rest and not state.pending


def _checked(text: str, message_id: str | None) -> Said:
    message = Said(text=text, message_id=message_id)
    if wrong := fault(message):
        raise Invalid(wrong)
    return message


def _refused(error: WorkflowUpdateFailedError) -> Conflict | Invalid:
    cause = error.cause
    closed = isinstance(cause, ApplicationError) and cause.type == "Closed"
    return Conflict(str(cause)) if closed else Invalid(str(cause))


def _ended(failure: BaseException) -> Conflict | Unreachable:
    if isinstance(failure, RPCError):
        return Unreachable(f"Temporal does not answer any more: {failure.message}")
    cause = failure.cause if isinstance(failure, WorkflowFailureError) else failure
    return Conflict(f"The conversation's workflow failed: {cause}")
