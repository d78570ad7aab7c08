"""A summary in the making: results come one by one, and memory does not grow with their number."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence

from pydantic import JsonValue

from evaluation.reduce import reducer
from evaluation.result import Attempt, FailureKind, SampleResult
from evaluation.statistics import Estimator, Moments
from evaluation.summary import Counts, Estimate, Group, Measure, Summary
from events.usage import Usage

MOST_GROUPS = 50
"""Values of one key of the metadata; a key with more is as good as an id, and is left out."""

OTHERS = "(others)"
"""What labels are counted under of which there are too many."""

COUNTED = tuple(name for name, value in Usage() if isinstance(value, int | float))


def summary(
    results: Iterable[SampleResult],
    expected: int,
    reducers: Sequence[str] = ("mean",),
    running: int = 0,
) -> Summary:
    """`expected` and `running` count epochs of samples; each sample comes once.

    Raises ValueError for a reducer that there is not.
    """
    tally = Tally(reducers)
    for result in results:
        tally.add(result)
    return tally.summary(expected, running)


class Tally:
    """The sums over all results so far."""

    def __init__(self, reducers: Sequence[str] = ("mean",)) -> None:
        """Raises ValueError for a reducer that there is not."""
        self._reducers = {name: reducer(name) for name in reducers}
        self._measures: dict[tuple[str, str], _Sums] = {}
        self._statuses: Counter[str] = Counter()
        self._limits: Counter[str] = Counter()
        self._failures: Counter[FailureKind] = Counter()
        self._spent: Counter[str] = Counter()
        self._seconds = 0.0
        self._usage = dict.fromkeys(COUNTED, 0.0)
        self._grading = dict.fromkeys(COUNTED, 0.0)
        self._groups = _Groups()

    def add(self, result: SampleResult) -> None:
        """Count a sample that has not been counted before."""
        for attempt in result.attempts:
            self._spend(attempt)
        for attempt in result.final:
            self._statuses[attempt.status] += 1
            self._statuses["stuck"] += attempt.stuck
            if attempt.limit is not None:
                self._limits[attempt.limit] += 1
            if attempt.failure is not None:
                self._failures[attempt.failure.kind] += 1
        groups = self._groups.of(result.metadata)
        for (scorer, metric), labels in _metrics(result).items():
            sums = self._measures.setdefault((scorer, metric), _Sums(self._reducers))
            for label in labels:
                sums.label(label)
            for name in self._reducers:
                if (value := result.reduced(scorer, name, metric)) is not None:
                    sums.add(name, value, groups)

    def summary(self, expected: int, running: int = 0) -> Summary:
        """As far as results have come."""
        counted = {one: self._statuses[one] for one in ("scored", "limited", "failed")}
        known = sum(counted.values()) + running
        return Summary(
            # More than expected: somebody has made the dataset smaller since.
            counts=Counts(
                expected=max(expected, known),
                running=running,
                missing=max(0, expected - known),
                **counted,
            ),
            measures=tuple(
                sums.measure(scorer, metric, self._groups.too_many)
                for (scorer, metric), sums in sorted(self._measures.items())
            ),
            usage=Usage.model_validate(self._usage),
            grading=Usage.model_validate(self._grading),
            seconds=self._seconds,
            stuck=self._statuses["stuck"],
            limits=dict(sorted(self._limits.items())),
            failures=dict(sorted(self._failures.items())),
            ungrouped=tuple(sorted(self._groups.too_many)),
            **self._spent,
        )

    def _spend(self, attempt: Attempt) -> None:
        self._spent["attempts"] += 1
        self._seconds += attempt.seconds
        for name in ("turns", "tool_calls", "tool_errors"):
            self._spent[name] += getattr(attempt, name)
        for name in COUNTED:
            self._usage[name] += getattr(attempt.usage, name)
            self._grading[name] += getattr(attempt.grading, name)


class _Groups:
    """Which values the keys of the metadata have had."""

    def __init__(self) -> None:
        self.too_many: set[str] = set()
        self._values: dict[str, set[str]] = {}

    def of(self, metadata: dict[str, JsonValue]) -> list[tuple[str, str]]:
        """The groups that a sample is in, by key and value."""
        found = ((key, group_name(value)) for key, value in metadata.items())
        return [(key, name) for key, name in found if name is not None and self._takes(key, name)]

    def _takes(self, key: str, name: str) -> bool:
        if key in self.too_many:
            return False
        values = self._values.setdefault(key, set())
        values.add(name)
        if len(values) > MOST_GROUPS:
            del self._values[key]
            self.too_many.add(key)
        return key not in self.too_many


class _Sums:
    """What is kept of one metric of one scorer."""

    def __init__(self, reducers: Iterable[str]) -> None:
        self._estimators = {name: Estimator() for name in reducers}
        self._first = next(iter(self._estimators))
        self._groups: dict[tuple[str, str], Moments] = {}
        self._labels: Counter[str] = Counter()

    def label(self, label: str) -> None:
        room = label in self._labels or len(self._labels) < MOST_GROUPS
        self._labels[label if room else OTHERS] += 1

    def add(self, name: str, value: float, groups: list[tuple[str, str]]) -> None:
        self._estimators[name].add(value)
        for group in groups if name == self._first else ():
            self._groups.setdefault(group, Moments()).add(value)

    def measure(self, scorer: str, metric: str, ungrouped: set[str]) -> Measure:
        groups: dict[str, dict[str, Group]] = {}
        for (key, name), sums in sorted(self._groups.items()):
            if key not in ungrouped:
                group = Group(
                    samples=sums.count, mean=sums.mean, standard_error=sums.standard_error
                )
                groups.setdefault(key, {})[name] = group
        return Measure(
            scorer=scorer,
            metric=metric,
            estimates={
                name: _estimate(sums, f"{scorer}/{metric}/{name}")
                for name, sums in self._estimators.items()
                if sums.moments.count
            },
            groups=groups,
            labels=dict(sorted(self._labels.items())),
        )


def _estimate(sums: Estimator, seed: str) -> Estimate:
    return Estimate(
        samples=sums.moments.count,
        mean=sums.moments.mean,
        standard_error=sums.moments.standard_error,
        interval=sums.interval(seed),
        wilson=sums.wilson(),
    )


def _metrics(result: SampleResult) -> dict[tuple[str, str], list[str]]:
    """Every metric that an epoch has, with the words among its values."""
    found: dict[tuple[str, str], list[str]] = {}
    for attempt in result.final:
        for scorer, score in attempt.scores.items():
            metrics = score.value if isinstance(score.value, dict) else {"": score.value}
            for metric, value in metrics.items():
                words = found.setdefault((scorer, metric), [])
                words.extend([value] if isinstance(value, str) else [])
    return found


def group_name(value: JsonValue) -> str | None:
    """What the group of samples with this value is called; lists and objects make none."""
    if value is None or isinstance(value, list | dict):
        return None
    return value if isinstance(value, str) else json.dumps(value)
