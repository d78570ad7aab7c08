"""Whether a worker or a gateway can work: what its probes answer."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from temporalio.client import Client
from temporalio.service import RPCError
from temporalio.worker import (
    ActivityInboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
    Worker,
)

from perdure.storage.errors import StoreError
from perdure.storage.store import Store

READY_TIMEOUT = 3.0
"""Seconds for an answer of Temporal, and of the store, before a process is not ready."""

PROBE_KEY = "gateway/ready"
"""A key that is read, and need not be there."""


async def find_missing(store: Store, temporal: Client) -> str | None:
    """Return what does not answer; None if all does."""
    answers = await asyncio.gather(_answers_store(store), _answers_temporal(temporal))
    names = ("The store", "Temporal")
    return next((name for name, answer in zip(names, answers, strict=True) if not answer), None)


async def _answers_store(store: Store) -> bool:
    try:
        async with asyncio.timeout(READY_TIMEOUT):
            await store.read(PROBE_KEY)
    except (StoreError, TimeoutError):
        return False
    return True


async def _answers_temporal(temporal: Client) -> bool:
    try:
        async with asyncio.timeout(READY_TIMEOUT):
            await temporal.service_client.check_health()
    except (RPCError, RuntimeError, TimeoutError):
        return False
    return True


class StepCount(Interceptor):
    """An interceptor of all Temporal workers of a process, which counts the steps at work."""

    def __init__(self) -> None:
        self.at_work = 0

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _Counter(next, self)


class _Counter(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, count: StepCount) -> None:
        super().__init__(next)
        self.count = count

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        self.count.at_work += 1
        try:
            return await super().execute_activity(input)
        finally:
            self.count.at_work -= 1


@dataclass
class WorkerReadiness:
    """The readiness of a worker, which starts, works and drains."""

    store: Store | None = None
    temporal: Client | None = None
    workers: Sequence[Worker] = ()
    is_draining: bool = False
    steps: StepCount = field(default_factory=StepCount)

    def describe(self) -> dict[str, int]:
        """Return the number of steps at work."""
        return {"steps": self.steps.at_work}

    async def find_reason(self) -> str | None:
        """Return why the worker takes no work, as a sentence; None if it does."""
        if self.is_draining:
            return "The worker drains: it takes no new work."
        if self.store is None or self.temporal is None:
            return "The worker starts."
        missing = await find_missing(self.store, self.temporal)
        if missing is not None:
            return f"{missing} does not answer."
        if not self.workers or not all(worker.is_running for worker in self.workers):
            return "The worker does not poll yet."
        return None
