"""The watchdog of a worker: it reports the conversations on its queue that do not progress.

A conversation in which an attempt failed here is checked next, and again until it progresses. All
others are checked in turn, a bounded number a round, but for those that had a step here since the
last one.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterable, Iterator
from datetime import UTC, datetime
from time import monotonic
from typing import Any

from temporalio import activity
from temporalio.api.workflowservice.v1 import ListWorkflowExecutionsRequest
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from perdure.client.address import WorkflowAddress
from perdure.client.client import Client
from perdure.client.description import RPC_TIMEOUT, describe_workflow
from perdure.client.diagnosis.diagnose import DiagnosisOptions, diagnose_store, diagnose_workflow
from perdure.client.diagnosis.trouble import STORE_CAUSE, is_replay_trouble
from perdure.client.ids import NIL_CONVERSATION_ID
from perdure.client.recorded_user import load_recorded_user
from perdure.client.trouble import Trouble
from perdure.client.workflow import ConversationWorkflow
from perdure.errors import ClientError, Unreachable
from perdure.events.base import TIMESTAMP_FORMAT
from perdure.operations.replacement import replace_workflow
from perdure.storage.errors import StoreError
from perdure.storage.keys import is_conversation_id
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.trouble import save_trouble
from perdure.temporal.connect import translate_rpc_errors
from perdure.temporal.names import conversation_id_of, owner_of

logger = logging.getLogger("perdure.worker.watchdog")

ROUND_INTERVAL = 5.0
"""Seconds between two rounds."""

ROUND_SHARE = 0.1
"""The share of the time in which conversations are checked: where a machine has too much to do, all
wait, and each check costs as much as a step."""

MAX_PAUSE = 30.0
"""The longest pause between two rounds in seconds."""

MAX_CHECKS_PER_QUERY = 100
"""The number of conversations of each query to check in one round."""

MAX_CONCURRENT_CHECKS = 8
"""The number of concurrent checks: the server has other work."""


class Watchdog(Interceptor):
    """An interceptor for a worker; failed workflow tasks are reported to `suspect`.

    A workflow that nobody can replay for `replace_after` seconds is replaced; 0 is for never.
    """

    def __init__(
        self, client: Client, interval: float = ROUND_INTERVAL, replace_after: float = 60.0
    ) -> None:
        self.client = client
        self.interval = interval
        self.replace_after = replace_after
        self._unreplayable: dict[str, float] = {}
        self._suspects: dict[str, None] = {}
        self._progressed: set[str] = set()
        self._reported: dict[str, Trouble] = {}
        self._recorded: dict[str, str] = {}
        self._page_tokens: dict[str, bytes] = {}
        self._unreachable = False
        self._store_trouble: Trouble | None = None

    def suspect(self, workflow_id: str) -> None:
        """Check a conversation in the next round. May be called from any thread."""
        self._suspects |= _conversations([workflow_id])

    def note_progress(self, workflow_id: str) -> None:
        """Leave a conversation out of the next round, unless it is a suspect by then."""
        self._progressed.add(workflow_id)

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _StepObserver(next, self)

    @contextlib.asynccontextmanager
    async def watch(self) -> AsyncIterator[None]:
        """Run one round after the other while inside."""
        rounds = asyncio.create_task(self._run_rounds())
        try:
            yield
        finally:
            rounds.cancel()
            await asyncio.wait({rounds})

    async def _run_rounds(self) -> None:
        pause = self.interval
        while True:
            await asyncio.sleep(pause)
            pause = self.interval
            try:
                await self._check_store()
                began = monotonic()
                await self.check_conversations()
                seconds = monotonic() - began
                pause = max(pause, min(seconds / ROUND_SHARE - seconds, MAX_PAUSE))
                if self._unreachable:
                    logger.info("Temporal answers again")
                self._unreachable = False
            except Unreachable as error:
                if not self._unreachable:
                    logger.warning("%s All goes on when it answers again.", error)
                self._unreachable = True
            except Exception:  # a fault of the watchdog must not stop the worker
                logger.exception("the watchdog failed, and looks again in %g s", pause)

    async def check_conversations(self) -> None:
        """Check those with failed attempts, and the next of all others. Raises Unreachable."""
        checked = dict.fromkeys(list(self._suspects)[:MAX_CHECKS_PER_QUERY])
        for workflow_id in checked:
            del self._suspects[workflow_id]
        progressed, self._progressed = self._progressed, set()
        for query in await self._build_queries():
            listed = await self._list_page(query)
            checked |= _conversations(it for it in listed if it not in progressed)
        waiting = iter(checked)
        checkers = (self._check_each(waiting) for _ in range(MAX_CONCURRENT_CHECKS))
        for failure in await asyncio.gather(*checkers, return_exceptions=True):
            if failure is not None:
                raise failure

    async def _check_store(self) -> None:
        """Check the store once a round: a step may wait for it inside, and never fail."""
        log = EventLog(self.client.store, self.client.user_id, NIL_CONVERSATION_ID)
        trouble = await diagnose_store(log)
        if trouble is not None and self._store_trouble is None:
            logger.warning("%s", trouble.sentence)
        elif trouble is None and self._store_trouble is not None:
            logger.info("the store answers again")
        self._store_trouble = trouble

    async def _build_queries(self) -> list[str]:
        """Build the queries, one for running turns alone if Temporal can search for them."""
        queue = self.client.task_queue.replace("'", "''")
        ours = f"TaskQueue='{queue}' AND WorkflowType='Conversation' AND ExecutionStatus='Running'"
        if await self.client.has_search_attributes():
            return [f"{ours} AND PerdureStatus='running'", ours]
        return [ours]

    async def _list_page(self, query: str) -> list[str]:
        """List the next page of workflow ids of a query."""
        service = self.client.temporal.workflow_service
        request = ListWorkflowExecutionsRequest(
            namespace=self.client.temporal.namespace,
            query=query,
            page_size=MAX_CHECKS_PER_QUERY,
            next_page_token=self._page_tokens.pop(query, b""),
        )
        with translate_rpc_errors("does not list its workflows"):
            answer = await service.list_workflow_executions(request, timeout=RPC_TIMEOUT)
        if answer.next_page_token:
            self._page_tokens[query] = answer.next_page_token
        return [execution.execution.workflow_id for execution in answer.executions]

    async def _check_each(self, workflow_ids: Iterator[str]) -> None:
        for workflow_id in workflow_ids:
            try:
                await self._check(workflow_id)
            except Unreachable:
                raise
            except (StoreError, ClientError, ValueError) as error:
                logger.info("conversation %s cannot be looked at: %s", _name(workflow_id), error)

    async def _check(self, workflow_id: str) -> None:
        workflow = self._workflow(workflow_id)
        trouble = await diagnose_workflow(workflow, DiagnosisOptions(check_store=False))
        if trouble is not None and trouble.is_over:
            trouble = None
        if trouble is not None or workflow_id in self._recorded:
            self._suspects[workflow_id] = None
        self._report(workflow_id, trouble)
        await self._record(workflow_id, trouble)
        await self._replace(workflow_id, trouble)

    def _report(self, workflow_id: str, trouble: Trouble | None) -> None:
        """Log each trouble, each change of its cause, and its end."""
        previous = self._reported.pop(workflow_id, None)
        if trouble is None:
            if previous is not None:
                logger.info("conversation %s goes on", _name(workflow_id))
            return
        self._reported[workflow_id] = trouble
        if previous is None or previous.cause != trouble.cause:
            level = logging.INFO if trouble.slow else logging.WARNING
            what = "takes long" if trouble.slow else "does not go on"
            logger.log(level, "conversation %s %s: %s", _name(workflow_id), what, trouble.sentence)

    async def _record(self, workflow_id: str, trouble: Trouble | None) -> None:
        """Record the trouble in the store for its readers, if the store can be written."""
        severe = trouble if trouble is not None and not trouble.slow else None
        cause = severe and severe.cause
        if cause in (self._recorded.get(workflow_id), STORE_CAUSE):
            return
        user_id = await self._load_user(workflow_id)
        log = EventLog(self.client.store, user_id, conversation_id_of(workflow_id))
        now = datetime.now(UTC).strftime(TIMESTAMP_FORMAT)
        await save_trouble(log, severe and severe.sentence, now)
        if cause is not None:
            self._recorded[workflow_id] = cause
        else:
            del self._recorded[workflow_id]

    async def _replace(self, workflow_id: str, trouble: Trouble | None) -> None:
        """Replace a workflow that nobody could replay for as long as the settings say."""
        if trouble is None or not is_replay_trouble(trouble):
            self._unreplayable.pop(workflow_id, None)
            return
        since = self._unreplayable.setdefault(workflow_id, monotonic())
        if not self.replace_after or monotonic() - since < self.replace_after:
            return
        user_id = await self._load_user(workflow_id)
        if await replace_workflow(self.client, user_id, conversation_id_of(workflow_id)):
            del self._unreplayable[workflow_id]
            logger.warning(
                "conversation %s: its workflow, which nobody could replay, is replaced",
                _name(workflow_id),
            )

    def _workflow(self, workflow_id: str) -> ConversationWorkflow:
        """Return the workflow of a conversation of any user, as an operator may look at it."""
        user_id = owner_of(workflow_id) or self.client.user_id
        return ConversationWorkflow(
            self.client.temporal,
            EventLog(self.client.store, user_id, conversation_id_of(workflow_id)),
            self.client.task_queue,
            WorkflowAddress(user_id, workflow_id),
            self.client.has_search_attributes,
        )

    async def _load_user(self, workflow_id: str) -> str:
        """Load the user of a workflow. Raises Unreachable."""
        description = await describe_workflow(self.client.temporal, workflow_id)
        if description is None:
            return owner_of(workflow_id) or self.client.user_id
        recorded = await load_recorded_user(self.client.temporal, description)
        return recorded or self.client.user_id


def _name(workflow_id: str) -> str:
    """Return the name of a conversation for people: its id, after its user unless the default."""
    return workflow_id.removeprefix("conv-")


class _StepObserver(ActivityInboundInterceptor):
    """Report each attempt to the watchdog, as a failed one or as progress."""

    def __init__(self, next: ActivityInboundInterceptor, watchdog: Watchdog) -> None:
        super().__init__(next)
        self.watchdog = watchdog

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        workflow_id = activity.info().workflow_id or ""
        try:
            result = await super().execute_activity(input)
        except Exception:
            self.watchdog.suspect(workflow_id)
            raise
        self.watchdog.note_progress(workflow_id)
        return result


def _conversations(workflow_ids: Iterable[str]) -> dict[str, None]:
    """Return the workflows of conversations among these, in order."""
    return dict.fromkeys(id for id in workflow_ids if is_conversation_id(conversation_id_of(id)))
