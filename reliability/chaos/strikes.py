"""Strikes on the workers and Temporal, and the steps that they interrupted."""

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Literal, TypeAlias

from temporalio.api.enums.v1 import PendingActivityState
from temporalio.service import RPCError

from examples.bfcl.pollers import pid_of
from perdure.client.conversation import Conversation
from perdure.client.discussion.handle import DiscussionHandle
from reliability.chaos.load.conversations import HEARTBEAT_TIMEOUT
from reliability.chaos.temporal import RestartableTemporal
from reliability.chaos.worker_pool import WorkerPool, WorkerProcess

StrikeKind: TypeAlias = Literal["worker", "temporal", "frozen"]
LiveItem: TypeAlias = Conversation | DiscussionHandle
"""What goes on, and is a workflow with an id."""

STARTED = PendingActivityState.PENDING_ACTIVITY_STATE_STARTED

MIN_SURVIVORS = 1
"""Workers left at work by a kill, so that work goes on while another starts."""

FREEZE_TIMEOUTS = (1.5, 2.5)
"""How many heartbeat time-outs a frozen worker is silent, from and to."""

DOWNTIME = (0.0, 3.0)
"""The least and the most seconds for which a killed Temporal server is down."""

DOUBLE_KILL_PROBABILITY = 0.3
"""The probability that a worker dies too while Temporal is down."""


@dataclass
class Strike:
    """`held` is what was in the middle of something: conversations, and the step of each.

    `at` is when it happened, by the monotonic clock.
    """

    kind: StrikeKind
    at: float
    interrupted_steps: list[tuple[str, str]] = field(default_factory=list)


@dataclass
class StrikeRunner:
    """Strikes one after the other; `live` gives the conversations that go on at the moment."""

    workers: WorkerPool
    temporal: RestartableTemporal
    live: Callable[[], Sequence[LiveItem]]
    random: random.Random
    every: float
    strikes: list[Strike] = field(default_factory=list)

    async def run(self, plan: Sequence[StrikeKind]) -> None:
        async with asyncio.TaskGroup() as freezing:
            for kind in plan:
                victim = await self._choose_victim()
                if kind == "worker":
                    await self._kill(victim)
                elif kind == "frozen":
                    freezing.create_task(self._freeze(victim))
                else:
                    await self._kill_temporal()

    async def _choose_victim(self) -> WorkerProcess:
        """Choose a polling worker, once enough others poll as well."""
        await self.workers.wait_until_polling(1 + MIN_SURVIVORS)
        await asyncio.sleep(self.random.uniform(0.3, 1.7) * self.every)
        return self.random.choice(await self.workers.wait_until_polling(1 + MIN_SURVIVORS))

    async def _kill(self, victim: WorkerProcess) -> None:
        strike = Strike("worker", monotonic())
        self.strikes.append(strike)
        # Temporal holds a step to be running for some seconds: until a heartbeat is overdue.
        _, strike.interrupted_steps = await asyncio.gather(
            self.workers.kill(victim), self._running_steps(victim.pid)
        )

    async def _freeze(self, victim: WorkerProcess) -> None:
        strike = Strike("frozen", monotonic())
        self.strikes.append(strike)
        self.workers.freeze(victim)
        strike.interrupted_steps = await self._running_steps(victim.pid)
        await asyncio.sleep(self.random.uniform(*FREEZE_TIMEOUTS) * HEARTBEAT_TIMEOUT)
        self.workers.thaw(victim)

    async def _kill_temporal(self) -> None:
        """Kill Temporal without stopping the running steps."""
        held = await self._running_steps()
        self.strikes.append(Strike("temporal", monotonic(), held))
        victims = (
            await self.workers.wait_until_polling(1)
            if self.random.random() < DOUBLE_KILL_PROBABILITY
            else []
        )
        await self.temporal.kill()
        await asyncio.sleep(self.random.uniform(*DOWNTIME))
        for victim in victims[:1]:
            await self.workers.kill(victim)
        await self.temporal.start()

    async def _running_steps(self, pid: int | None = None) -> list[tuple[str, str]]:
        """The steps that Temporal believes to be running, in the worker process `pid` or in any."""
        running = await asyncio.gather(*(running_steps(item, pid) for item in self.live()))
        return [held for steps in running for held in steps]


async def running_steps(item: LiveItem, pid: int | None) -> list[tuple[str, str]]:
    try:
        described = await item.handle.describe()
    except RPCError:  # it has not begun yet
        return []
    pending = [
        activity
        for activity in described.raw_description.pending_activities
        if activity.state == STARTED
    ]
    return [
        (item.id, activity.activity_type.name)
        for activity in pending
        if pid is None or pid_of(activity.last_worker_identity) == pid
    ]


def plan_strikes(
    kills: int, server_kills: int, frozen: int, chance: random.Random
) -> list[StrikeKind]:
    """Return strikes of all kinds, in random order."""
    counts: dict[StrikeKind, int] = {"worker": kills, "temporal": server_kills, "frozen": frozen}
    plan = [kind for kind, count in counts.items() for _ in range(count)]
    chance.shuffle(plan)
    return plan
