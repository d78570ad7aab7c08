"""The kills and their times: one every so many answers, so that every phase is hit."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Literal, TypeAlias, get_args

from reliability.batch_chaos.command import BatchCommand
from reliability.batch_chaos.model import BatchModelServer
from reliability.batch_chaos.worker_pool import Disruption, KeyedWorkerPool, key_of
from reliability.chaos.temporal import RestartableTemporal
from reliability.chaos.worker_pool import WorkerProcess

StrikeKind: TypeAlias = Literal[
    "worker", "payer", "workers", "Temporal", "command", "everything", "frozen"
]

KIND_COUNTS: dict[StrikeKind, int] = {
    "worker": 5,
    "payer": 4,
    "workers": 2,
    "Temporal": 2,
    "command": 2,
    "everything": 2,
    "frozen": 1,
}
"""Of each so many; `payer` is the worker that has just been sent an answer."""

DOWNTIME = (0.0, 3.0)
"""Seconds, from and to, that a killed Temporal stays away."""

FREEZE_SECONDS = (6.0, 12.0)
"""Seconds of silence: more than the 5 after which a step is given to another."""

HANG_TIMEOUT = 240.0
"""Seconds without an answer of the model after which the batch counts as hanging."""


class Hanging(Exception):
    """Nothing goes on any more."""


@dataclass
class StrikeRunner:
    """`done` counts the strikes by kind."""

    workers: KeyedWorkerPool
    temporal: RestartableTemporal
    command: BatchCommand
    model: BatchModelServer
    random: random.Random
    observe: Callable[[], Awaitable[None]]
    done: Counter[StrikeKind] = field(default_factory=Counter)
    temporal_kills: int = 0

    async def run(self, plan: Sequence[StrikeKind], answers: int) -> None:
        """The strikes one after the other, spread over so many answers. Raises Hanging."""
        async with asyncio.TaskGroup() as freezing:
            for nth, kind in enumerate(plan):
                due = answers * (nth + self.random.uniform(0.3, 0.7)) / len(plan)
                await self._wait_for_responses(int(due))
                await self.observe()
                if kind == "frozen":
                    victim = self.random.choice(await self.workers.wait_until_polling(2))
                    seconds = self.random.uniform(*FREEZE_SECONDS)
                    freezing.create_task(self.workers.freeze_for(victim, seconds))
                else:
                    await self._strike(kind)
                self.done[kind] += 1

    async def _wait_for_responses(self, answers: int) -> None:
        """Wait until the model has given this many answers."""
        responses, since = -1, monotonic()
        while (now := len(self.model.calls)) < answers:
            if now != responses:
                responses, since = now, monotonic()
            if monotonic() - since > HANG_TIMEOUT:
                raise Hanging(f"the model was not asked for {HANG_TIMEOUT:g} s")
            await asyncio.sleep(0.02)

    async def _strike(self, kind: StrikeKind) -> None:
        match kind:
            case "worker":
                await asyncio.sleep(self.random.uniform(0.0, 1.0))
                await self.workers.kill(
                    self.random.choice(await self.workers.wait_until_polling(2))
                )
            case "payer":
                await self.workers.kill(await self._wait_for_answered_worker())
            case "workers":
                await asyncio.sleep(self.random.uniform(0.0, 1.0))
                await self.workers.kill_all(await self.workers.wait_until_polling(1))
            case "Temporal":
                await self._kill_temporal([])
            case "command":
                self.command.kill()
            case _:
                members = await self.workers.wait_until_polling(1)
                self.command.kill()
                await self._kill_temporal(members)

    async def _wait_for_answered_worker(self) -> WorkerProcess:
        """The worker that has had the newest answer, at that very moment."""
        members = {key_of(item): item for item in await self.workers.wait_until_polling(2)}
        seen = len(self.model.paid)
        while True:
            if len(self.model.paid) > seen:
                if (payer := members.get(self.model.paid[-1].worker)) is not None:
                    await asyncio.sleep(self.random.choice((0.0, 0.0, 0.005, 0.02)))
                    return payer
                seen = len(self.model.paid)
            await self.model.wait_for_response()

    async def _kill_temporal(self, members: Sequence[WorkerProcess]) -> None:
        """SIGKILL Temporal, and the workers with it; it comes back, and so do they."""
        since = monotonic()
        self.temporal_kills += 1
        await asyncio.gather(self.temporal.kill(), self.workers.kill_all(members))
        await asyncio.sleep(self.random.uniform(*DOWNTIME))
        await self.temporal.start()
        self.workers.disruptions.append(Disruption("Temporal away", "", since, monotonic()))


def plan_strikes(count: int, chance: random.Random) -> list[StrikeKind]:
    """Plan this many strikes, of all kinds if there are enough, in mixed order."""
    kinds: tuple[StrikeKind, ...] = get_args(StrikeKind)
    weights = [KIND_COUNTS[kind] for kind in kinds]
    plan = [*kinds, *chance.choices(kinds, weights, k=max(0, count - len(kinds)))][:count]
    chance.shuffle(plan)
    return plan
