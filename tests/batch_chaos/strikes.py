"""Who is killed, and when: at every so many answers of the model, so that all happens meanwhile."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Literal, TypeAlias, get_args

from tests.batch_chaos.command import Researcher
from tests.batch_chaos.crew import Blow, KeyedCrew, key_of
from tests.batch_chaos.model import Oracle
from tests.chaos.crew import Member
from tests.chaos.temporal import MortalTemporal

Kind: TypeAlias = Literal[
    "worker", "payer", "workers", "Temporal", "command", "everything", "frozen"
]

SHARES: dict[Kind, int] = {
    "worker": 5,
    "payer": 4,
    "workers": 2,
    "Temporal": 2,
    "command": 2,
    "everything": 2,
    "frozen": 1,
}
"""Of each so many; `payer` is the worker that has just been sent an answer."""

DOWN = (0.0, 3.0)
"""Seconds, from and to, that a killed Temporal stays away."""

FROZEN = (6.0, 12.0)
"""Seconds of silence: more than the 5 after which a step is given to another."""

STILL = 240.0
"""Seconds without an answer of the model after which the batch counts as hanging."""


class Hanging(Exception):
    """Nothing goes on any more."""


@dataclass
class Hunt:
    """`done` counts the strikes by kind."""

    crew: KeyedCrew
    temporal: MortalTemporal
    researcher: Researcher
    oracle: Oracle
    chance: random.Random
    look: Callable[[], Awaitable[None]]
    done: Counter[Kind] = field(default_factory=Counter)
    temporal_kills: int = 0

    async def run(self, plan: Sequence[Kind], answers: int) -> None:
        """The strikes one after the other, spread over so many answers. Raises Hanging."""
        async with asyncio.TaskGroup() as freezing:
            for nth, kind in enumerate(plan):
                due = answers * (nth + self.chance.uniform(0.3, 0.7)) / len(plan)
                await self._until(int(due))
                await self.look()
                if kind == "frozen":
                    victim = self.chance.choice(await self.crew.until_at_work(2))
                    seconds = self.chance.uniform(*FROZEN)
                    freezing.create_task(self.crew.freeze_for(victim, seconds))
                else:
                    await self._strike(kind)
                self.done[kind] += 1

    async def _until(self, answers: int) -> None:
        """So many answers have been given by the model."""
        given, since = -1, monotonic()
        while (now := len(self.oracle.calls)) < answers:
            if now != given:
                given, since = now, monotonic()
            if monotonic() - since > STILL:
                raise Hanging(f"the model was not asked for {STILL:g} s")
            await asyncio.sleep(0.02)

    async def _strike(self, kind: Kind) -> None:
        match kind:
            case "worker":
                await asyncio.sleep(self.chance.uniform(0.0, 1.0))
                await self.crew.kill(self.chance.choice(await self.crew.until_at_work(2)))
            case "payer":
                await self.crew.kill(await self._paying())
            case "workers":
                await asyncio.sleep(self.chance.uniform(0.0, 1.0))
                await self.crew.kill_all(await self.crew.until_at_work(1))
            case "Temporal":
                await self._fell([])
            case "command":
                self.researcher.kill()
            case _:
                members = await self.crew.until_at_work(1)
                self.researcher.kill()
                await self._fell(members)

    async def _paying(self) -> Member:
        """The worker that has had the newest answer, at that very moment."""
        members = {key_of(one): one for one in await self.crew.until_at_work(2)}
        seen = len(self.oracle.paid)
        while True:
            if len(self.oracle.paid) > seen:
                if (payer := members.get(self.oracle.paid[-1].worker)) is not None:
                    await asyncio.sleep(self.chance.choice((0.0, 0.0, 0.005, 0.02)))
                    return payer
                seen = len(self.oracle.paid)
            await self.oracle.news()

    async def _fell(self, members: Sequence[Member]) -> None:
        """SIGKILL Temporal, and the workers with it; it comes back, and so do they."""
        since = monotonic()
        self.temporal_kills += 1
        await asyncio.gather(self.temporal.kill(), self.crew.kill_all(members))
        await asyncio.sleep(self.chance.uniform(*DOWN))
        await self.temporal.start()
        self.crew.blows.append(Blow("Temporal away", "", since, monotonic()))


def strikes(count: int, chance: random.Random) -> list[Kind]:
    """So many, of all kinds if there are enough, mixed."""
    kinds: tuple[Kind, ...] = get_args(Kind)
    weights = [SHARES[kind] for kind in kinds]
    plan = [*kinds, *chance.choices(kinds, weights, k=max(0, count - len(kinds)))][:count]
    chance.shuffle(plan)
    return plan
