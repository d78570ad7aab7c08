"""Workers that can be told apart by their key, and a book of what befell each of them."""

import asyncio
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Literal

from tests.chaos.crew import Crew, Member


@dataclass(frozen=True)
class Blow:
    """What befell a worker, by its key; from when to when, by the monotonic clock.

    Temporal has no key: its blows are everybody's. A request of a killed worker may come in late.
    """

    what: Literal["killed", "frozen", "silent", "Temporal away"]
    worker: str
    since: float
    until: float


@dataclass
class KeyedCrew(Crew):
    """Each worker's key for the model is the name of its log."""

    blows: list[Blow] = field(default_factory=list)

    async def kill_all(self, members: Iterable[Member]) -> None:
        """At once, each with a successor."""
        await asyncio.gather(*(self.kill(one) for one in members))

    async def kill(self, member: Member) -> None:
        if member in self.members:
            self.blows.append(Blow("killed", key_of(member), monotonic(), math.inf))
        await super().kill(member)

    async def freeze_for(self, member: Member, seconds: float) -> None:
        """Silent for a while, as on a machine that has other things to do."""
        since = monotonic()
        self.freeze(member)
        try:
            await asyncio.sleep(seconds)
        finally:
            if member.frozen and member in self.members:
                self.thaw(member)
            self.blows.append(Blow("frozen", key_of(member), since, monotonic()))

    def env_of(self, machine: Path, log: Path) -> dict[str, str]:
        return {**super().env_of(machine, log), "OPENAI_API_KEY": log.stem}


def key_of(member: Member) -> str:
    return member.log.stem
