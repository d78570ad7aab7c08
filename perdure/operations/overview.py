"""The work of all users at a moment: who is at work, at what, since when, and what is in trouble.

Temporal tells: its list has the search attributes of conversations, its descriptions their steps,
and batches their progress in their memos.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import get_args

from temporalio.api.enums.v1 import PendingActivityState, TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import WorkflowExecution
from temporalio.service import RPCError, RPCStatusCode

from perdure.agent.loop.model_queues import llm_queue_name, tools_queue_name
from perdure.agent.loop.status import Status
from perdure.client.client import Client
from perdure.client.description import RPC_TIMEOUT, describe_workflow
from perdure.errors import Conflict, Unreachable
from perdure.evaluation.progress import PROGRESS_MEMO, Progress
from perdure.events.base import Tolerant
from perdure.operations.deploy import POLLER_EXPIRY
from perdure.temporal.names import conversation_id_of
from perdure.temporal.search_attributes import (
    AGENT,
    BATCH,
    COST,
    LAST_ACTIVITY,
    MODEL,
    STATUS,
    STEPS,
    USER,
)

AT_WORK: tuple[Status, ...] = ("running", "waiting_for_confirmation", "waiting_for_answer")

MAX_LISTED = 500
"""Conversations at work of which the longest at work are described."""

MAX_BATCHES = 20

PARALLEL_REQUESTS = 8

STEP_TASKS = TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY

QUEUES: dict[str, tuple[Callable[[str], str], TaskQueueType.ValueType]] = {
    "workflows": (str, TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW),
    "steps": (str, STEP_TASKS),
    "models": (llm_queue_name, STEP_TASKS),
    "tools": (tools_queue_name, STEP_TASKS),
}
"""What is counted of a task queue, and of the queues beside it: the name, and the kind of tasks."""


class ConversationAtWork(Tolerant):
    """A conversation whose agent is at work, or waits for a person.

    `steps` and `cost` in US dollars are those before this turn; `step` is what runs now, as in
    `llm.chat`, and `attempt` its number.
    """

    id: str
    user_id: str
    status: str
    since: datetime
    agent: str | None = None
    model: str | None = None
    batch: str | None = None
    steps: int = 0
    cost: float = 0.0
    step: str | None = None
    attempt: int = 1
    trouble: str | None = None


class QueueState(Tolerant):
    """A task queue: the pollers of its workers, and the tasks that wait for one."""

    workers: int
    backlog: int
    oldest_seconds: float


class Overview(Tolerant):
    """The work of a task queue; `counts` has the open conversations by their status."""

    counts: dict[str, int]
    conversations: tuple[ConversationAtWork, ...]
    batches: tuple[Progress, ...]
    queues: dict[str, QueueState]
    """The tasks of workflows and of steps, and those handed on to workers for models and tools."""


async def read_overview(client: Client, limit: int, user_id: str | None = None) -> Overview:
    """Read the work of all users, or of one; the longest at work of `limit` conversations.

    Raises Conflict where Temporal lacks our search attributes, and Unreachable.
    """
    try:
        conversations, counts, batches, queues = await asyncio.gather(
            _read_conversations(client, limit, user_id),
            _count_conversations(client, user_id),
            _read_batches(client, user_id),
            _read_queues(client),
        )
    except RPCError as error:
        if error.status is RPCStatusCode.INVALID_ARGUMENT:
            raise Conflict(
                "Temporal lacks our search attributes.", "Run `perdure setup temporal`."
            ) from error
        raise Unreachable(f"Temporal does not answer: {error.message}") from error
    return Overview(
        counts=counts, conversations=tuple(conversations), batches=batches, queues=queues
    )


def _open_workflows(client: Client, kind: str, user_id: str | None) -> str:
    query = f"WorkflowType = '{kind}' AND ExecutionStatus = 'Running'"
    query += f" AND TaskQueue = '{client.task_queue}'"
    return query if user_id is None else f"{query} AND {USER.name} = '{user_id}'"


async def _count_conversations(client: Client, user_id: str | None) -> dict[str, int]:
    query = _open_workflows(client, "Conversation", user_id)

    async def count(status: str) -> int:
        found = await client.temporal.count_workflows(f"{query} AND {STATUS.name} = '{status}'")
        return found.count

    statuses = get_args(Status)
    return dict(zip(statuses, await asyncio.gather(*map(count, statuses)), strict=True))


async def _read_conversations(
    client: Client, limit: int, user_id: str | None
) -> Sequence[ConversationAtWork]:
    statuses = ", ".join(f"'{status}'" for status in AT_WORK)
    query = _open_workflows(client, "Conversation", user_id)
    query += f" AND {STATUS.name} IN ({statuses})"
    listed = client.temporal.list_workflows(query, limit=MAX_LISTED)
    found = sorted([_read_listed(each) async for each in listed], key=lambda item: item.since)
    requests = asyncio.Semaphore(PARALLEL_REQUESTS)

    async def complete(item: ConversationAtWork) -> ConversationAtWork:
        async with requests:
            return await _add_step(client.as_user(item.user_id), item)

    shown = await asyncio.gather(*map(complete, found[:limit]))
    return sorted(shown, key=lambda item: (item.trouble is None, item.status == "running"))


def _read_listed(found: WorkflowExecution) -> ConversationAtWork:
    attributes = found.typed_search_attributes
    return ConversationAtWork(
        id=conversation_id_of(found.id),
        user_id=attributes.get(USER) or "local",
        status=attributes.get(STATUS) or "running",
        since=(attributes.get(LAST_ACTIVITY) or found.start_time).astimezone(UTC),
        agent=attributes.get(AGENT),
        model=attributes.get(MODEL),
        batch=attributes.get(BATCH),
        steps=attributes.get(STEPS) or 0,
        cost=attributes.get(COST) or 0.0,
    )


async def _add_step(client: Client, item: ConversationAtWork) -> ConversationAtWork:
    """Return a conversation with its step at work, and with its trouble if it has any."""
    conversation = client.conversation(item.id)
    described = await describe_workflow(client.temporal, conversation.workflow_id)
    steps = described.pending_activities if described is not None else ()
    trouble = await conversation.diagnose()
    step = max(steps, key=_step_rank, default=None)
    changes = {
        "step": step.activity_type.name if step is not None else None,
        "attempt": step.attempt if step is not None else 1,
        "trouble": trouble.sentence if trouble is not None else None,
    }
    return item.model_copy(update=changes)


def _step_rank(step: PendingActivityInfo) -> tuple[int, bool]:
    """Put the step first that has been tried most often, then one that runs."""
    return step.attempt, step.state == PendingActivityState.PENDING_ACTIVITY_STATE_STARTED


async def _read_batches(client: Client, user_id: str | None) -> tuple[Progress, ...]:
    query = _open_workflows(client, "Batch", user_id)
    batches = []
    async for batch in client.temporal.list_workflows(query, limit=MAX_BATCHES):
        if batch.parent_id is None:  # others are parts of one
            value = await batch.memo_value(PROGRESS_MEMO, None, type_hint=Progress)
            batches += [value] if value is not None else []
    return tuple(batches)


async def _read_queues(client: Client) -> dict[str, QueueState]:
    queues = ((name_queue(client.task_queue), kind) for name_queue, kind in QUEUES.values())
    states = await asyncio.gather(*(_read_queue(client, *each) for each in queues))
    return dict(zip(QUEUES, states, strict=True))


async def _read_queue(client: Client, queue: str, kind: TaskQueueType.ValueType) -> QueueState:
    request = DescribeTaskQueueRequest(
        namespace=client.temporal.namespace,
        task_queue=TaskQueue(name=queue),
        task_queue_type=kind,
        report_stats=True,
    )
    service = client.temporal.workflow_service
    found = await service.describe_task_queue(request, timeout=RPC_TIMEOUT)
    since = datetime.now(UTC) - POLLER_EXPIRY
    polled = {it.identity: it.last_access_time.ToDatetime(tzinfo=UTC) for it in found.pollers}
    return QueueState(
        workers=sum(at > since for at in polled.values()),
        backlog=found.stats.approximate_backlog_count,
        oldest_seconds=found.stats.approximate_backlog_age.ToTimedelta().total_seconds(),
    )
