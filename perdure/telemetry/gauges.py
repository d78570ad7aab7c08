"""The gauges of a worker: how many conversations there are, and how far batches are.

Temporal counts them, by our search attributes, and batches tell their progress in their memos.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Mapping
from typing import Protocol, get_args

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from perdure.agent.loop.status import Status
from perdure.evaluation.progress import PROGRESS_MEMO, Progress
from perdure.telemetry import names
from perdure.temporal.search_attributes import STATUS

logger = logging.getLogger("perdure.worker.telemetry")

INTERVAL = 15.0
"""Seconds between two looks: nine requests to Temporal each."""

MAX_BATCHES = 100
"""Batches whose progress is told: each is a value of a label."""

STATES = ("expected", "scored", "limited", "failed", "running")


class Setter(Protocol):
    def set(self, name: str, value: int, labels: Mapping[str, str]) -> None: ...


class Gauges:
    """The gauges of the conversations and batches of a task queue."""

    def __init__(
        self, client: Client, task_queue: str, metrics: Setter, interval: float = INTERVAL
    ) -> None:
        self._client, self._metrics, self._interval = client, metrics, interval
        self._open = f"ExecutionStatus = 'Running' AND TaskQueue = '{task_queue}'"
        self._batches: set[str] = set()

    @contextlib.asynccontextmanager
    async def watch(self) -> AsyncIterator[None]:
        """Set the gauges again and again while inside."""
        watching = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.wait({watching})

    async def _watch(self) -> None:
        while True:
            try:
                await self.set_all()
            except RPCError as error:
                if error.status is RPCStatusCode.INVALID_ARGUMENT:  # it will not know them later
                    logger.warning(
                        "Conversations are not counted, as Temporal lacks our search attributes: "
                        "`perdure setup temporal` registers them."
                    )
                    return
            await asyncio.sleep(self._interval)

    async def set_all(self) -> None:
        """Set all gauges. Raises RPCError."""
        await self._set_batches()
        for status in get_args(Status):
            query = f"WorkflowType = 'Conversation' AND {self._open} AND {STATUS.name} = '{status}'"
            count = (await self._client.count_workflows(query)).count
            self._metrics.set(names.CONVERSATIONS, count, {names.STATUS: status})
            if status == "waiting_for_confirmation":
                self._metrics.set(names.APPROVALS_WAITING, count, {})

    async def _set_batches(self) -> None:
        """Set the progress of batches; of one that has ended since, nothing runs."""
        ended, self._batches = self._batches, set()
        query = f"WorkflowType = 'Batch' AND {self._open}"
        async for batch in self._client.list_workflows(query, limit=MAX_BATCHES):
            if batch.parent_id is not None:  # a part of another
                continue
            value = await batch.memo_value(PROGRESS_MEMO, None, type_hint=Progress)
            if value is None:
                continue
            self._batches.add(value.name)
            for state in STATES:
                labels = {names.BATCH: value.name, "state": state}
                self._metrics.set(names.BATCH_SAMPLES, getattr(value, state), labels)
        for name in ended - self._batches:
            for state in STATES:
                self._metrics.set(names.BATCH_SAMPLES, 0, {names.BATCH: name, "state": state})
