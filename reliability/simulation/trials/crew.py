"""Processes that die, or are only thought dead, and what writers have them do."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from perdure.errors import PerdureError
from perdure.storage.errors import StoreUnavailable
from reliability.simulation.bucket import Bucket
from reliability.simulation.scheduler import PROCESS, Process
from reliability.simulation.store import Access
from reliability.simulation.temporal import SILENCE_TIMEOUT, FaultRates

R = TypeVar("R")
T = TypeVar("T")

RETRY_PAUSE = 0.5


@dataclass(eq=False, kw_only=True)
class Worker(Process, Generic[R]):
    """A process, and the resources that it has in memory."""

    resources: R


class Crew(Generic[R]):
    """Two processes at a time, a fresh one for each that died.

    `happened` counts what befell them. An attempt that nobody waits for may go on.
    """

    def __init__(
        self, bucket: Bucket, rates: FaultRates, make_resources: Callable[[Access], R]
    ) -> None:
        self.bucket = bucket
        self.loop = bucket.loop
        self.rates = rates
        self.make_resources = make_resources
        self.workers: list[Worker[R]] = []
        self.stragglers: list[tuple[Worker[R], asyncio.Task[Any]]] = []
        self.happened: Counter[str] = Counter()
        self.loop.crash = self._crashes

    async def complete(self, name: str, step: Callable[[R], Awaitable[T]]) -> T:
        """Return the result of a step, which is attempted until an attempt comes back with it.

        Raises what an attempt raises, but StoreUnavailable, after which another one begins.
        """
        while True:
            worker = self._choose()
            job = self._begin(worker, step)
            self.loop.record(f"{name} begins on {worker.name}")
            if not await self._wait(worker, job):
                self.stragglers.append((worker, job))
                self.happened["given up" if worker.alive else "lost"] += 1
                self.loop.record(f"{name} is thought dead")
                continue
            try:
                result = job.result()
            except StoreUnavailable:
                await asyncio.sleep(RETRY_PAUSE)
            else:
                self.loop.record(f"{name} ends")
                return result

    async def wait_until_idle(self) -> None:
        """Wait until no process does anything any more. Raises what is no PerdureError."""
        while living := [job for worker, job in self.stragglers if worker.alive and not job.done()]:
            await asyncio.wait(living, timeout=SILENCE_TIMEOUT)
        for _, job in self.stragglers:
            if job.done() and (error := job.exception()) is not None:
                if not isinstance(error, PerdureError):
                    raise error
                self.happened[f"straggler: {type(error).__name__}"] += 1

    def _begin(self, worker: Worker[R], step: Callable[[R], Awaitable[T]]) -> "asyncio.Task[T]":
        context = copy_context()
        context.run(PROCESS.set, worker)

        async def attempt() -> T:
            return await step(worker.resources)

        return self.loop.create_task(attempt(), context=context)

    async def _wait(self, worker: Worker[R], job: "asyncio.Task[Any]") -> bool:
        """Wait for an attempt; tell whether it ended before its process was thought dead."""
        patience = self.loop.delay() if self._happens(self.rates.silences) else SILENCE_TIMEOUT
        ended, _ = await asyncio.wait([job], timeout=patience)
        while not ended and worker.alive and self.loop.now > self.bucket.calm:
            ended, _ = await asyncio.wait([job], timeout=SILENCE_TIMEOUT)
        return bool(ended)

    def _choose(self) -> Worker[R]:
        alive = [worker for worker in self.workers if worker.alive]
        if len(alive) < 2:
            store = Access(self.bucket, patience=self.loop.random.choice((0.0, 1e9)))
            name = f"worker-{len(self.workers)}"
            alive.append(Worker(name, resources=self.make_resources(store)))
            self.workers.append(alive[-1])
        return self.loop.random.choice(alive)

    def _crashes(self, process: Process) -> bool:
        if process.alive and self._happens(self.rates.crashes):
            process.alive = False
            self.happened["crashed"] += 1
            self.loop.record(f"{process.name} dies")
        return not process.alive

    def _happens(self, probability: float) -> bool:
        return self.loop.now < self.bucket.calm and self.loop.chance(probability)
