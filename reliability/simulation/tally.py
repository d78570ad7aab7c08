"""Runs of many schedules, and their totals."""

from collections import Counter
from dataclasses import dataclass, field

from reliability.simulation.trials.kinds import kinds_of, make_playable


@dataclass
class Tally:
    """The counts of all schedules."""

    schedules: Counter[str] = field(default_factory=Counter)
    """The number of schedules of each kind."""
    events: int = 0
    requests: int = 0
    traces: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    failed: list[tuple[int, str]] = field(default_factory=list)
    """The seed and the kind of each schedule that broke a law."""

    def add(self, other: "Tally") -> None:
        self.schedules += other.schedules
        self.events += other.events
        self.requests += other.requests
        self.traces += other.traces
        self.faults += other.faults
        self.failed += other.failed


def run_seeds(seeds: range, kind: str | None = None) -> Tally:
    """Play the schedules of these seeds, all or of one kind, up to the first that breaks a law."""
    tally = Tally()
    for seed in seeds:
        for each in kinds_of(seed) if kind is None else (kind,):
            _run(tally, each, seed)
            if tally.failed:
                return tally
    return tally


def _run(tally: Tally, kind: str, seed: int) -> None:
    playable = make_playable(kind, seed)
    try:
        playable.run()
    except Exception:  # whatever it is: the seed tells it again
        tally.failed.append((seed, kind))
    tally.schedules[kind] += 1
    tally.events += sum("/events/" in key for key in playable.bucket.objects)
    tally.requests += playable.bucket.requests
    tally.traces += playable.happened
    tally.faults += playable.bucket.faults
