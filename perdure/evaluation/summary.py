"""The summary of a batch's results, and its computation in memory of bounded size."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import Field, JsonValue

from perdure.evaluation.reducers import find_reducer
from perdure.evaluation.result import FailureKind, SampleResult
from perdure.evaluation.statistics import Estimator, Interval, Moments
from perdure.events.base import Tolerant
from perdure.events.usage import Usage

MAX_GROUPS = 50
"""The most values of a metadata key; a key with more is no use for a breakdown."""

OTHER_LABELS = "(others)"
"""The label that counts all labels beyond the first MAX_GROUPS."""


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


def summarize(
    results: Iterable[SampleResult],
    expected: int,
    reducers: Sequence[str] = ("mean",),
    running: int = 0,
) -> Summary:
    """Summarize results, each of another sample; `expected` and `running` count epochs.

    Raises ValueError for an unknown reducer.
    """
    tally = Tally(reducers)
    for result in results:
        tally.add(result)
    return tally.summary(expected, running)


class Tally:
    """Running sums over results."""

    def __init__(self, reducers: Sequence[str] = ("mean",)) -> None:
        """Raises ValueError for an unknown reducer."""
        self._reducers = {name: find_reducer(name) for name in reducers}
        self._measures: dict[tuple[str, str], _Sums] = {}
        self._statuses: Counter[str] = Counter()
        self._limits: Counter[str] = Counter()
        self._failures: Counter[FailureKind] = Counter()
        self._spent: Counter[str] = Counter()
        self._seconds = 0.0
        self._usage = self._grading = Usage()
        self._group_names: defaultdict[str, set[str]] = defaultdict(set)

    def add(self, result: SampleResult) -> None:
        """Add the result of another sample."""
        for attempt in result.attempts:
            self._spent["attempts"] += 1
            for name in ("turns", "tool_calls", "tool_errors"):
                self._spent[name] += getattr(attempt, name)
            self._seconds += attempt.seconds
            self._usage += attempt.usage
            self._grading += attempt.grading
        for attempt in result.final_attempts:
            self._statuses[attempt.status] += 1
            self._spent["stuck"] += attempt.stuck
            if attempt.limit is not None:
                self._limits[attempt.limit] += 1
            if attempt.failure is not None:
                self._failures[attempt.failure.kind] += 1
        self._add_scores(result)

    def _add_scores(self, result: SampleResult) -> None:
        groups, measured = self._groups_of(result.metadata), {}
        for attempt in result.final_attempts:
            for scorer, score in attempt.scores.items():
                for metric, value in score.metrics.items():
                    sums = self._measures.setdefault((scorer, metric), _Sums(self._reducers))
                    measured[scorer, metric] = sums
                    if isinstance(value, str):
                        sums.add_label(value)
        for (scorer, metric), sums in measured.items():
            for name in self._reducers:
                if (number := result.reduce(scorer, name, metric)) is not None:
                    sums.add(name, number, groups)

    def _groups_of(self, metadata: dict[str, JsonValue]) -> list[tuple[str, str]]:
        """Return the groups of a sample, by key and value."""
        groups = []
        for key, value in metadata.items():
            names, name = self._group_names[key], group_name(value)
            if name is not None and len(names) <= MAX_GROUPS:
                names.add(name)
                groups.append((key, name))
        return groups

    def summary(self, expected: int, running: int = 0) -> Summary:
        """Summarize the results so far."""
        by_status = {status: self._statuses[status] for status in ("scored", "limited", "failed")}
        known = self._statuses.total() + running
        # There are more results than expected if the dataset has shrunk since.
        counts = Counts(
            expected=max(expected, known),
            running=running,
            missing=max(0, expected - known),
            **by_status,
        )
        ungrouped = {key for key, names in self._group_names.items() if len(names) > MAX_GROUPS}
        return Summary(
            counts=counts,
            measures=tuple(
                sums.measure(scorer, metric, ungrouped)
                for (scorer, metric), sums in sorted(self._measures.items())
            ),
            usage=self._usage,
            grading=self._grading,
            seconds=self._seconds,
            limits=dict(sorted(self._limits.items())),
            failures=dict(sorted(self._failures.items())),
            ungrouped=tuple(sorted(ungrouped)),
            **self._spent,
        )


class _Sums:
    """Running sums of one metric of one scorer."""

    def __init__(self, reducers: Iterable[str]) -> None:
        self._estimators = {name: Estimator() for name in reducers}
        self._first = next(iter(self._estimators))
        self._groups: defaultdict[tuple[str, str], Moments] = defaultdict(Moments)
        self._labels: Counter[str] = Counter()

    def add_label(self, label: str) -> None:
        counted = label in self._labels or len(self._labels) < MAX_GROUPS
        self._labels[label if counted else OTHER_LABELS] += 1

    def add(self, name: str, value: float, groups: list[tuple[str, str]]) -> None:
        self._estimators[name].add(value)
        for group in groups if name == self._first else ():
            self._groups[group].add(value)

    def measure(self, scorer: str, metric: str, ungrouped: set[str]) -> Measure:
        groups: defaultdict[str, dict[str, Group]] = defaultdict(dict)
        for (key, name), sums in sorted(self._groups.items()):
            if key not in ungrouped:
                groups[key][name] = Group(**_mean_fields(sums))
        return Measure(
            scorer=scorer,
            metric=metric,
            estimates={
                name: _estimate(sums, f"{scorer}/{metric}/{name}")
                for name, sums in self._estimators.items()
                if sums.count
            },
            groups=groups,
            labels=dict(sorted(self._labels.items())),
        )


def _estimate(sums: Estimator, seed: str) -> Estimate:
    intervals = {"interval": sums.interval(seed), "wilson": sums.wilson_interval()}
    return Estimate(**_mean_fields(sums), **intervals)


def _mean_fields(sums: Moments) -> dict[str, Any]:
    return {"samples": sums.count, "mean": sums.mean, "standard_error": sums.standard_error}


def group_name(value: JsonValue) -> str | None:
    """Return the name of the group with a metadata value; None for lists and objects."""
    if value is None or isinstance(value, list | dict):
        return None
    return value if isinstance(value, str) else json.dumps(value)
