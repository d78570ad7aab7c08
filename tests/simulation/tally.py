"""Many schedules at once, and what they came to in all."""

from collections import Counter
from dataclasses import dataclass, field

from tests.simulation.laws import check
from tests.simulation.play import play, scheduled


@dataclass
class Tally:
    """What so many schedules came to."""

    schedules: int = 0
    events: int = 0
    requests: int = 0
    happened: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    failed: list[int] = field(default_factory=list)

    def add(self, other: "Tally") -> None:
        self.schedules += other.schedules
        self.events += other.events
        self.requests += other.requests
        self.happened += other.happened
        self.faults += other.faults
        self.failed += other.failed


def played(seeds: range) -> Tally:
    """Play the schedules of these seeds, up to the first that breaks a law."""
    tally = Tally()
    for seed in seeds:
        schedule = scheduled(seed)
        try:
            play(schedule)
            check(schedule)
        except Exception:  # whatever it is: the seed tells it again
            tally.failed.append(seed)
        tally.schedules += 1
        tally.events += sum("/events/" in key for key in schedule.bucket.objects)
        tally.requests += schedule.bucket.requests
        tally.happened += schedule.happened
        tally.faults += schedule.bucket.faults
        if tally.failed:
            break
    return tally
