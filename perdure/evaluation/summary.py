"""The summary of a batch's results."""

from pydantic import Field

from perdure.evaluation.result import FailureKind
from perdure.evaluation.statistics import Interval
from perdure.events.base import Tolerant
from perdure.events.usage import Usage


class Counts(Tolerant):
    """Counts of epochs of samples: expected = scored + limited + failed + running + missing."""

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
    """The mean over the samples with the same value of a metadata key."""

    samples: int
    mean: float
    standard_error: float | None


class Estimate(Group):
    """The mean over samples, whose epochs are combined by a reducer.

    `interval` is the bootstrap's; `wilson` is None unless every sample has 0 or 1.
    """

    interval: Interval | None
    wilson: Interval | None


class Measure(Tolerant):
    """A metric of a scorer; a plain value has the metric "".

    `groups` are by key and value of the metadata, with the first reducer; `labels` counts the
    values that are words.
    """

    scorer: str
    metric: str
    estimates: dict[str, Estimate] = Field(default_factory=dict)
    groups: dict[str, dict[str, Group]] = Field(default_factory=dict)
    labels: dict[str, int] = Field(default_factory=dict)


class Summary(Tolerant):
    """The summary of a batch.

    Attempts, usage, seconds, turns and tool calls are of every attempt, also failed ones; all else
    is of the attempt that counts for each epoch. `ungrouped` has the metadata keys with too many
    values for a breakdown.
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
        """Return the metric's estimate by the first reducer that has one; None without one."""
        for measure in self.measures:
            if (measure.scorer, measure.metric) == (scorer, metric):
                return next(iter(measure.estimates.values()), None)
        return None
