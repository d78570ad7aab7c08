"""What happens to the workers and to Temporal, and what they had in hand when it did."""

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Literal, TypeAlias

from temporalio.api.enums.v1 import PendingActivityState
from temporalio.service import RPCError

from client.conversation import Conversation
from examples.bfcl.pollers import pid_of
from tests.chaos.crew import Crew, Member
from tests.chaos.load import SILENCE
from tests.chaos.temporal import MortalTemporal

Kind: TypeAlias = Literal["worker", "temporal", "frozen"]

STARTED = PendingActivityState.PENDING_ACTIVITY_STATE_STARTED

SURVIVORS = 1
"""Workers left at work by a kill, so that work goes on while another starts."""

FROZEN = (1.5, 2.5)
"""How many heartbeat time-outs a frozen worker is silent, from and to."""

DOWN = (0.0, 3.0)
"""Seconds, from and to, that a killed Temporal stays away."""

AT_ONCE = 0.3
"""How often a worker dies while Temporal is away, too."""


@dataclass
class Strike:
    """`held` is what was in the middle of something: conversations, and the step of each.

    `at` is when it happened, by the monotonic clock.
    """

    kind: Kind
    at: float
    held: list[tuple[str, str]] = field(default_factory=list)


@dataclass
class Hunt:
    """Strikes one after the other; `live` gives the conversations that go on at the moment."""

    crew: Crew
    temporal: MortalTemporal
    live: Callable[[], Sequence[Conversation]]
    chance: random.Random
    every: float
    strikes: list[Strike] = field(default_factory=list)

    async def run(self, plan: Sequence[Kind]) -> None:
        async with asyncio.TaskGroup() as freezing:
            for kind in plan:
                victim = await self._victim()
                if kind == "worker":
                    await self._kill(victim)
                elif kind == "frozen":
                    freezing.create_task(self._freeze(victim))
                else:
                    await self._fell()

    async def _victim(self) -> Member:
        """One that is at work, after a while, with another that survives it."""
        await self.crew.until_at_work(1 + SURVIVORS)
        await asyncio.sleep(self.chance.uniform(0.3, 1.7) * self.every)
        return self.chance.choice(await self.crew.until_at_work(1 + SURVIVORS))

    async def _kill(self, victim: Member) -> None:
        strike = Strike("worker", monotonic())
        self.strikes.append(strike)
        # Temporal holds a step to be running for some seconds: until a heartbeat is overdue.
        _, strike.held = await asyncio.gather(self.crew.kill(victim), self._held(victim.pid))

    async def _freeze(self, victim: Member) -> None:
        strike = Strike("frozen", monotonic())
        self.strikes.append(strike)
        self.crew.freeze(victim)
        strike.held = await self._held(victim.pid)
        await asyncio.sleep(self.chance.uniform(*FROZEN) * SILENCE)
        self.crew.thaw(victim)

    async def _fell(self) -> None:
        """Kill Temporal; what was running was not told of it."""
        held = await self._held()
        self.strikes.append(Strike("temporal", monotonic(), held))
        victims = await self.crew.until_at_work(1) if self.chance.random() < AT_ONCE else []
        await self.temporal.kill()
        await asyncio.sleep(self.chance.uniform(*DOWN))
        for victim in victims[:1]:
            await self.crew.kill(victim)
        await self.temporal.start()

    async def _held(self, pid: int | None = None) -> list[tuple[str, str]]:
        """The steps that Temporal believes to be running, in the worker process `pid` or in any."""
        found = await asyncio.gather(*(_steps(one, pid) for one in self.live()))
        return [held for steps in found for held in steps]


async def _steps(conversation: Conversation, pid: int | None) -> list[tuple[str, str]]:
    try:
        described = await conversation.handle.describe()
    except RPCError:  # it has not begun yet
        return []
    pending = [one for one in described.raw_description.pending_activities if one.state == STARTED]
    return [
        (conversation.id, one.activity_type.name)
        for one in pending
        if pid is None or pid_of(one.last_worker_identity) == pid
    ]


def planned(kills: int, server_kills: int, frozen: int, chance: random.Random) -> list[Kind]:
    """All kinds, mixed."""
    counts: dict[Kind, int] = {"worker": kills, "temporal": server_kills, "frozen": frozen}
    plan = [kind for kind, count in counts.items() for _ in range(count)]
    chance.shuffle(plan)
    return plan
