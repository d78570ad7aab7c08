"""Whether a worker or a gateway can work: what its probes answer."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from temporalio.client import Client
from temporalio.service import RPCError
from temporalio.worker import Worker

from perdure.storage.errors import StoreError
from perdure.storage.store import Store
from perdure.temporal.worker_load import WorkerLoad

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


@dataclass
class WorkerReadiness:
    """The readiness of a worker, which starts, works and drains."""

    store: Store | None = None
    temporal: Client | None = None
    workers: Sequence[Worker] = ()
    is_draining: bool = False
    load: WorkerLoad = field(default_factory=WorkerLoad)

    def describe(self) -> dict[str, int]:
        """Return the number of steps at work."""
        return {"steps": self.load.at_work}

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
