"""A worker's look at the conversations on its queue: what does not go on is told, and kept.

A conversation in which something failed here is looked at next, and again until it goes on. All
others are looked at in turn, a bounded number a round, however many there are.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from temporalio import activity
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import (
    GetWorkflowExecutionHistoryRequest,
    ListWorkflowExecutionsRequest,
)
from temporalio.service import RPCError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from client.client import Client
from client.diagnosis import Care, of_store, trouble_of
from client.errors import ClientError, Unreachable
from client.remote import LIMIT, Remote
from client.trouble import STORE, Trouble
from storage.errors import StoreError
from storage.keys import is_conversation_id
from storage.log import EventLog
from storage.trouble import keep_trouble

logger = logging.getLogger("perdure.worker.watchdog")

EVERY = 5.0
"""Seconds between two rounds."""

LOOKS = 100
"""Conversations of each list that are looked at in one round."""

AT_ONCE = 8
"""How many are looked at side by side: the server has other work."""


NOBODY = str(UUID(int=0))
"""A conversation that there is not, to be asked for."""


class Watchdog(Interceptor):
    """To be given to a worker as an interceptor; `suspect` is for workflow tasks that fail."""

    def __init__(self, client: Client, every: float = EVERY) -> None:
        self.client = client
        self.every = every
        self._suspects: dict[str, None] = {}
        self._told: dict[str, Trouble] = {}
        self._kept: dict[str, str] = {}
        self._pages: dict[str, bytes] = {}
        self._unreachable = False
        self._store: Trouble | None = None

    def suspect(self, workflow_id: str) -> None:
        """Look at it in the next round. May be called from any thread."""
        self._suspects[workflow_id] = None

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _Suspecting(next, self)

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """While it is used, one round follows the other."""
        rounds = asyncio.create_task(self._rounds())
        try:
            yield
        finally:
            rounds.cancel()
            await asyncio.wait({rounds})

    async def _rounds(self) -> None:
        while True:
            await asyncio.sleep(self.every)
            try:
                await self.look()
                if self._unreachable:
                    logger.info("Temporal answers again")
                self._unreachable = False
            except Unreachable as error:
                if not self._unreachable:
                    logger.warning("%s All goes on when it answers again.", error)
                self._unreachable = True
            except Exception:  # whatever is wrong with the watchdog, the worker has to work
                logger.exception("the watchdog failed, and looks again in %g s", self.every)

    async def look(self) -> None:
        """One round. Raises Unreachable."""
        await self._look_at_store()
        names = {name: None for name in self._suspected() if _id(name)}
        for query in await self._queries():
            names |= {name: None for name in await self._page(query) if _id(name)}
        waiting = iter(names)
        lanes = (self._look_at(waiting) for _ in range(AT_ONCE))
        for failure in await asyncio.gather(*lanes, return_exceptions=True):
            if failure is not None:
                raise failure

    async def _look_at_store(self) -> None:
        """Once a round: a step may wait for it inside, and never fail."""
        found = await of_store(EventLog(self.client.store, self.client.user_id, NOBODY))
        if found is not None and self._store is None:
            logger.warning("%s", found.sentence)
        elif found is None and self._store is not None:
            logger.info("the store answers again")
        self._store = found

    def _suspected(self) -> list[str]:
        names = list(self._suspects)[:LOOKS]
        for name in names:
            del self._suspects[name]
        return names

    async def _queries(self) -> list[str]:
        """Those at work are a list of their own, where Temporal can tell which they are."""
        queue = self.client.task_queue.replace("'", "''")
        ours = f"TaskQueue='{queue}' AND WorkflowType='Conversation' AND ExecutionStatus='Running'"
        if await self.client.searchable():
            return [f"{ours} AND PerdureStatus='running'", ours]
        return [ours]

    async def _page(self, query: str) -> list[str]:
        """Those whose turn it is."""
        service = self.client.temporal.workflow_service
        request = ListWorkflowExecutionsRequest(
            namespace=self.client.temporal.namespace,
            query=query,
            page_size=LOOKS,
            next_page_token=self._pages.pop(query, b""),
        )
        try:
            answer = await service.list_workflow_executions(request, timeout=LIMIT)
        except RPCError as error:
            raise Unreachable(f"Temporal does not list its workflows: {error.message}") from error
        if answer.next_page_token:
            self._pages[query] = answer.next_page_token
        return [one.execution.workflow_id for one in answer.executions]

    async def _look_at(self, names: Iterator[str]) -> None:
        for name in names:
            try:
                await self._look_at_one(name)
            except Unreachable:
                raise
            except (StoreError, ClientError, ValueError) as error:
                logger.info("conversation %s cannot be looked at: %s", _id(name), error)

    async def _look_at_one(self, name: str) -> None:
        remote = self._remote(name, self.client.user_id)
        told = await remote.described()
        trouble = await trouble_of(remote, told, Care(store=False)) if told else None
        if trouble is not None and trouble.is_over:
            trouble = None
        if trouble is not None or name in self._kept:
            self.suspect(name)
        self._tell(name, trouble)
        await self._keep(name, trouble)

    def _tell(self, name: str, trouble: Trouble | None) -> None:
        """A line in the worker's log for each trouble, each change of it, and its end."""
        before = self._told.pop(name, None)
        if trouble is not None:
            self._told[name] = trouble
        if trouble is None and before is not None:
            logger.info("conversation %s goes on", _id(name))
        elif trouble is not None and (before is None or before.cause != trouble.cause):
            level = logging.INFO if trouble.slow else logging.WARNING
            what = "takes long" if trouble.slow else "does not go on"
            logger.log(level, "conversation %s %s: %s", _id(name), what, trouble.sentence)

    async def _keep(self, name: str, trouble: Trouble | None) -> None:
        """Keep it for those who read the store alone, where it can be written."""
        grave = trouble if trouble is not None and not trouble.slow else None
        if (grave and grave.cause) == self._kept.get(name) or (grave and grave.cause == STORE):
            return
        log = self._remote(name, await self._user(name)).log
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")
        await keep_trouble(log, grave and grave.sentence, now)
        if grave is not None:
            self._kept[name] = grave.cause
        else:
            del self._kept[name]

    def _remote(self, name: str, user_id: str) -> Remote:
        client = self.client
        log = EventLog(client.store, user_id, _id(name) or name)
        return Remote(client.temporal, log, client.task_queue, client.searchable, client.address)

    async def _user(self, name: str) -> str:
        """Whose conversation it is, as its workflow was told. Raises Unreachable."""
        temporal = self.client.temporal
        request = GetWorkflowExecutionHistoryRequest(
            namespace=temporal.namespace,
            execution=WorkflowExecution(workflow_id=name),
            maximum_page_size=1,
        )
        service = temporal.workflow_service
        try:
            answer = await service.get_workflow_execution_history(request, timeout=LIMIT)
        except RPCError as error:
            raise Unreachable(f"Temporal does not show its history: {error.message}") from error
        begun = answer.history.events[0].workflow_execution_started_event_attributes
        [start, *_] = await temporal.data_converter.decode(begun.input.payloads)
        return str(start["user_id"]) if isinstance(start, dict) else self.client.user_id


class _Suspecting(ActivityInboundInterceptor):
    """Tells the watchdog of each attempt that failed."""

    def __init__(self, next: ActivityInboundInterceptor, watchdog: Watchdog) -> None:
        super().__init__(next)
        self.watchdog = watchdog

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        try:
            return await super().execute_activity(input)
        except Exception:
            if (name := activity.info().workflow_id) is not None:
                self.watchdog.suspect(name)
            raise


def _id(name: str) -> str | None:
    """The conversation of a workflow; None for a workflow that is somebody else's."""
    conversation_id = name.removeprefix("conv-")
    return conversation_id if is_conversation_id(conversation_id) else None
