"""Runs of many schedules, and their totals."""

from collections import Counter
from dataclasses import dataclass, field

from reliability.simulation.laws import check
from reliability.simulation.play import make_schedule, play


@dataclass
class Tally:
    """The counts of all schedules."""

    schedules: int = 0
    events: int = 0
    requests: int = 0
    traces: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    failed: list[int] = field(default_factory=list)

    def add(self, other: "Tally") -> None:
        self.schedules += other.schedules
        self.events += other.events
        self.requests += other.requests
        self.traces += other.traces
        self.faults += other.faults
        self.failed += other.failed


def run_seeds(seeds: range) -> Tally:
    """Play the schedules of these seeds, up to the first that breaks a law."""
    tally = Tally()
    for seed in seeds:
        schedule = make_schedule(seed)
        try:
            play(schedule)
            check(schedule)
        except Exception:  # whatever it is: the seed tells it again
            tally.failed.append(seed)
        tally.schedules += 1
        tally.events += sum("/events/" in key for key in schedule.bucket.objects)
        tally.requests += schedule.bucket.requests
        tally.traces += schedule.trace
        tally.faults += schedule.bucket.faults
        if tally.failed:
            break
    return tally
