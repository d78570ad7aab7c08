"""Workers with a key each, and a record of the disruptions of each."""

import asyncio
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Literal

from reliability.chaos.worker_pool import WorkerPool, WorkerProcess


@dataclass(frozen=True)
class Disruption:
    """A disruption of a worker, given by its key; times are of the monotonic clock.

    Temporal has no key: its blows are everybody's. A request of a killed worker may come in late.
    """

    kind: Literal["killed", "frozen", "silent", "Temporal away"]
    worker: str
    since: float
    until: float


@dataclass
class KeyedWorkerPool(WorkerPool):
    """Each worker's key for the model is the name of its log."""

    disruptions: list[Disruption] = field(default_factory=list)

    async def kill_all(self, members: Iterable[WorkerProcess]) -> None:
        """At once, each with a successor."""
        await asyncio.gather(*(self.kill(member) for member in members))

    async def kill(self, member: WorkerProcess) -> None:
        if member in self.workers:
            self.disruptions.append(Disruption("killed", key_of(member), monotonic(), math.inf))
        await super().kill(member)

    async def freeze_for(self, member: WorkerProcess, seconds: float) -> None:
        """Silent for a while, as on a machine that has other things to do."""
        since = monotonic()
        self.freeze(member)
        try:
            await asyncio.sleep(seconds)
        finally:
            if member.frozen and member in self.workers:
                self.thaw(member)
            self.disruptions.append(Disruption("frozen", key_of(member), since, monotonic()))

    def env_of(self, machine: Path, log: Path) -> dict[str, str]:
        return {**super().env_of(machine, log), "OPENAI_API_KEY": log.stem}


def key_of(member: WorkerProcess) -> str:
    return member.log.stem
