"""A trial: writers of one kind of objects beside conversations, and the laws of what they leave."""

import asyncio
import random
from abc import ABC, abstractmethod
from collections import Counter
from typing import Any, ClassVar, Generic, TypeVar

from reliability.simulation.bucket import Bucket
from reliability.simulation.laws import require
from reliability.simulation.play import (
    CALM_AFTER,
    CRASH_RATES,
    FAULT_RATES,
    TIMEOUT_RATES,
    Broken,
)
from reliability.simulation.scheduler import Endless, SimulatedLoop
from reliability.simulation.store import LATE_SECONDS, Access
from reliability.simulation.temporal import FaultRates
from reliability.simulation.trials.crew import Crew

R = TypeVar("R")


class Trial(ABC, Generic[R]):
    """The play of one seed with the writers of a kind; `part` takes the place of the code on trial.

    The laws read the bucket itself, by none of that code.
    """

    kind: ClassVar[str]
    part: Any
    """The class on trial, which `broken.py` derives wrong ones from."""
    written_once: ClassVar[tuple[str, ...]] = ()
    """What the keys contain whose objects are never written a second time."""

    def __init__(self, seed: int, part: Any = None, *, telling: bool = False) -> None:
        self.seed = seed
        self.part = part or self.part
        self.loop = SimulatedLoop(seed, telling=telling)  # type: ignore[abstract]
        dice = self.loop.random
        self.bucket = Bucket(self.loop, dice.choice(FAULT_RATES), CALM_AFTER)
        rates = FaultRates(dice.choice(CRASH_RATES), dice.choice(TIMEOUT_RATES), 0.0)
        self.crew: Crew[R] = Crew(self.bucket, rates, self.make_resources)

    def run(self) -> None:
        """Play the schedule, and check its laws. Raises Broken where one does not hold."""
        random.seed(self.seed)  # storage/s3.py rolls dice of its own for its pauses
        try:
            self.loop.play(self._play())
        except Endless as error:
            raise Broken(f"no end is in sight: {error}") from error
        require(not self.loop.problems, f"a task failed unseen: {self.loop.problems[:1]}")
        self.check_written_once()
        self.check()

    async def _play(self) -> None:
        await self.act()
        await self.crew.wait_until_idle()
        await asyncio.sleep(LATE_SECONDS)  # what was late arrives
        await self.settle()

    @abstractmethod
    def make_resources(self, store: Access) -> R:
        """Make what a fresh process has."""

    @abstractmethod
    async def act(self) -> None:
        """Do all that is done in the schedule."""

    async def settle(self) -> None:
        """Do what somebody does once everything works and nobody else is at work."""

    @abstractmethod
    def check(self) -> None:
        """Raises Broken where a law does not hold."""

    def check_written_once(self) -> None:
        for key, bodies in self.bucket.history.items():
            if any(part in key for part in self.written_once):
                require(
                    len(set(bodies) - {None}) == 1, f"{key} was written a second time, otherwise"
                )

    def read_calmly(self, read: Any) -> Any:
        """Return what a fresh process reads once everything works."""
        loop = SimulatedLoop(0)  # type: ignore[abstract]
        bucket = Bucket(loop, 0.0, 0.0)
        bucket.objects = dict(self.bucket.objects)
        return loop.play(read(self.make_resources(Access(bucket, 0.0))))

    @property
    def happened(self) -> Counter[str]:
        return self.crew.happened
