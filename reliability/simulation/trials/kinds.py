"""The kinds of schedules, and which of them a seed plays."""

from collections import Counter
from typing import Any, Protocol

from reliability.simulation.bucket import Bucket
from reliability.simulation.laws import check
from reliability.simulation.play import make_schedule, play
from reliability.simulation.scheduler import SimulatedLoop
from reliability.simulation.trials.discussions import DiscussionTrial
from reliability.simulation.trials.lists import ListTrial
from reliability.simulation.trials.memories import MemoryTrial
from reliability.simulation.trials.secrets import SecretTrial
from reliability.simulation.trials.trial import Trial
from reliability.simulation.trials.values import ValueTrial

CONVERSATION = "conversation"
TRIALS: dict[str, type[Trial[Any]]] = {
    trial.kind: trial
    for trial in (DiscussionTrial, ValueTrial, MemoryTrial, ListTrial, SecretTrial)
}
KINDS = (CONVERSATION, *TRIALS)

TRIAL_INTERVAL = 3
"""One of so many seeds plays a trial beside its conversation, of one kind after another."""


class Playable(Protocol):
    """A schedule, and what became of it once it was run."""

    loop: SimulatedLoop
    bucket: Bucket

    @property
    def happened(self) -> Counter[str]: ...

    def run(self) -> None:
        """Play it, and check its laws. Raises Broken, and whatever goes wrong."""


class ConversationTrial:
    """The schedule of a conversation, its runs, its forks and those who look on."""

    def __init__(self, seed: int, *, telling: bool = False) -> None:
        self.schedule = make_schedule(seed, telling=telling)
        self.loop = self.schedule.loop
        self.bucket = self.schedule.bucket

    @property
    def happened(self) -> Counter[str]:
        return self.schedule.trace

    def run(self) -> None:
        play(self.schedule)
        check(self.schedule)


def make_playable(kind: str, seed: int, *, telling: bool = False) -> Playable:
    """Make the schedule of this kind and seed, not yet played."""
    if kind == CONVERSATION:
        return ConversationTrial(seed, telling=telling)
    return TRIALS[kind](seed, telling=telling)


def kinds_of(seed: int) -> tuple[str, ...]:
    """Return the kinds that a seed plays where none is asked for: always a conversation."""
    if seed % TRIAL_INTERVAL:
        return (CONVERSATION,)
    return (CONVERSATION, tuple(TRIALS)[seed // TRIAL_INTERVAL % len(TRIALS)])
