"""What all results of a batch together say."""

from pydantic import Field

from evaluation.result import FailureKind
from evaluation.statistics import Interval
from events.base import Tolerant
from events.usage import Usage


class Counts(Tolerant):
    """Of epochs of samples: expected = scored + limited + failed + running + missing."""

    expected: int
    scored: int = 0
    limited: int = 0
    failed: int = 0
    running: int = 0
    missing: int = 0

    @property
    def done(self) -> int:
        return self.scored + self.limited


class Group(Tolerant):
    """The mean over the samples that have one value in their metadata."""

    samples: int
    mean: float
    standard_error: float | None


class Estimate(Tolerant):
    """The mean over samples of what a reducer makes of their epochs.

    `interval` is the bootstrap's; `wilson` is there where every sample has 0 or 1.
    """

    samples: int
    mean: float
    standard_error: float | None
    interval: Interval | None
    wilson: Interval | None


class Measure(Tolerant):
    """One metric of one scorer; a plain value has the metric "".

    `groups` are by key and value of the metadata, under the first reducer; `labels` counts values
    that are words.
    """

    scorer: str
    metric: str
    estimates: dict[str, Estimate] = Field(default_factory=dict)
    groups: dict[str, dict[str, Group]] = Field(default_factory=dict)
    labels: dict[str, int] = Field(default_factory=dict)


class Summary(Tolerant):
    """What was spent counts every attempt, also those that failed; all else those that count.

    `ungrouped` are keys of the metadata with too many values for a breakdown.
    """

    counts: Counts
    measures: tuple[Measure, ...] = ()
    attempts: int = 0
    usage: Usage = Usage()
    grading: Usage = Usage()
    seconds: float = 0.0
    turns: int = 0
    tool_calls: int = 0
    tool_errors: int = 0
    stuck: int = 0
    limits: dict[str, int] = Field(default_factory=dict)
    failures: dict[FailureKind, int] = Field(default_factory=dict)
    ungrouped: tuple[str, ...] = ()

    def score(self, scorer: str, metric: str = "") -> Estimate | None:
        """Under the first reducer that has one."""
        found = (one for one in self.measures if (one.scorer, one.metric) == (scorer, metric))
        return next((one for each in found for one in each.estimates.values()), None)
