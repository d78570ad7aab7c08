"""Which workflows have begun, changed their status or ended: one question for all of a process.

It is the doorbell of conversations whose workflow has ended, and of every user's feed. Temporal's
visibility store answers it, which is behind by a second or less as a rule.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from time import monotonic

from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.workflow.v1 import WorkflowExecutionInfo
from temporalio.api.workflowservice.v1 import ListWorkflowExecutionsRequest
from temporalio.service import RPCError

from perdure.client.client import Client
from perdure.client.description import RPC_TIMEOUT, RUNNING
from perdure.errors import Unreachable
from perdure.temporal.connect import translate_rpc_errors
from perdure.temporal.search_attributes import LAST_ACTIVITY, STATUS

logger = logging.getLogger("perdure.gateway")

PAGE_SIZE = 1000

OVERLAP = timedelta(seconds=10)
"""The time that each question goes back behind the newest change: changes come out of order."""

DEEP_OVERLAP = timedelta(minutes=5)
"""The same for one question in DEEP_INTERVAL, for a visibility store that was far behind."""

DEEP_INTERVAL = 60.0

MAX_INTERVAL = 30.0
"""The longest pause, in seconds, between two questions while Temporal does not answer."""


@dataclass(frozen=True)
class Change:
    """A workflow that has begun, changed its status or ended."""

    workflow_id: str
    run_id: str
    is_open: bool


Listener = Callable[[Change], None]


class ChangeWatch:
    """The changes of all conversations, asked for while anybody listens."""

    def __init__(self, client: Client, interval: float) -> None:
        self._client = client
        self._interval = interval
        self._by_workflow: dict[str, list[Listener]] = {}
        self._of_all: list[Listener] = []
        self._seen: dict[tuple[str, str], tuple[datetime, bytes]] = {}
        self._newest = datetime.min.replace(tzinfo=UTC)
        self._went_deep = 0.0
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def listen(self, listener: Listener, workflow_id: str | None = None) -> Iterator[None]:
        """Call `listener` for each change of a workflow, or of all, while inside."""
        listeners = self._of_all
        if workflow_id is not None:
            listeners = self._by_workflow.setdefault(workflow_id, [])
        listeners.append(listener)
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        try:
            yield
        finally:
            listeners.remove(listener)
            if workflow_id is not None and not listeners:
                self._by_workflow.pop(workflow_id, None)
            if not self._by_workflow and not self._of_all:
                self._task.cancel()
                self._task = None

    async def _run(self) -> None:
        pause, self._went_deep = self._interval, monotonic()
        # What was before, each listener has found out by itself; the server's clock may be behind.
        self._newest = max(self._newest, datetime.now(UTC) - DEEP_OVERLAP)
        while True:
            try:
                for change in await self._ask():
                    self._tell(change)
                pause = self._interval
            except (Unreachable, RPCError) as error:
                logger.info("Temporal does not list workflows: %s", error)
                pause = min(2 * pause, MAX_INTERVAL)
            await asyncio.sleep(pause)

    def _tell(self, change: Change) -> None:
        for listener in (*self._by_workflow.get(change.workflow_id, ()), *self._of_all):
            listener(change)

    async def _ask(self) -> list[Change]:
        """Ask for what has changed since the last question. Raises Unreachable."""
        overlap = OVERLAP
        if monotonic() - self._went_deep > DEEP_INTERVAL:
            self._went_deep, overlap = monotonic(), DEEP_OVERLAP
        since = self._newest - overlap
        query = build_query(since, await self._client.has_search_attributes())
        changes: list[Change] = []
        token = b""
        while True:
            request = ListWorkflowExecutionsRequest(
                namespace=self._client.temporal.namespace,
                page_size=PAGE_SIZE,
                next_page_token=token,
                query=query,
            )
            with translate_rpc_errors("does not list workflows"):
                service = self._client.temporal.workflow_service
                answer = await service.list_workflow_executions(request, timeout=RPC_TIMEOUT)
            changes += filter(None, map(self._read, answer.executions))
            token = answer.next_page_token
            if not token:
                break
        oldest = self._newest - DEEP_OVERLAP
        self._seen = {key: value for key, value in self._seen.items() if value[0] >= oldest}
        return changes

    def _read(self, info: WorkflowExecutionInfo) -> Change | None:
        """Return the change of a workflow; None if it is known."""
        fields = info.search_attributes.indexed_fields
        moments = [_to_datetime(info.start_time), _to_datetime(info.close_time)]
        if (activity := fields.get(LAST_ACTIVITY.name)) is not None:
            moments.append(datetime.fromisoformat(activity.data.decode().strip('"')))
        status = fields.get(STATUS.name)
        mark = b"%d %s %s" % (
            info.status,
            status.data if status else b"",
            activity.data if activity else b"",
        )
        changed = max(moments)
        key = (info.execution.workflow_id, info.execution.run_id)
        if self._seen.get(key, (changed, b""))[1] == mark:
            return None
        self._seen[key] = (changed, mark)
        self._newest = max(self._newest, changed)
        return Change(*key, is_open=info.status in RUNNING)


def build_query(since: datetime, has_search_attributes: bool) -> str:
    """Build the question for the conversations that have changed since then."""
    fields = ["StartTime", "CloseTime", *([LAST_ACTIVITY.name] if has_search_attributes else [])]
    moment = f"{since.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"
    since_then = " OR ".join(f"{field} >= '{moment}'" for field in fields)
    return f"WorkflowType = 'Conversation' AND ({since_then})"


def _to_datetime(moment: Timestamp) -> datetime:
    return moment.ToDatetime(tzinfo=UTC)
