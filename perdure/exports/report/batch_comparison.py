"""Comparisons of batches against the first of them, as a whole and by group."""

from collections.abc import Sequence
from typing import NamedTuple

from perdure.evaluation.comparison import Comparison, compare
from perdure.evaluation.result import SampleResult
from perdure.evaluation.summary import MAX_GROUPS, group_name
from perdure.exports.report.formatting import metric_name, number_first, p_value, share

MAX_METRICS = 100


class ScoresBySample:
    """Numbers by metric and by the id of a sample, under one scorer and one reducer.

    `scorers` are all scorers with a score; `groups` are the ids of samples by key and value of
    their metadata; `ungrouped` are keys with too many values.
    """

    def __init__(self, scorer: str, reducer: str) -> None:
        self.scorers: set[str] = set()
        self.values: dict[str, dict[str, float]] = {}
        self.samples = 0
        self._scorer = scorer
        self._reducer = reducer
        self.groups: dict[str, dict[str, list[str]]] = {}
        self.ungrouped: set[str] = set()

    def add(self, result: SampleResult) -> None:
        """Add a sample. Raises ValueError for an unknown reducer."""
        self.samples += 1
        metrics: set[str] = set()
        for attempt in result.final_attempts:
            self.scorers.update(attempt.scores)
            if (score := attempt.scores.get(self._scorer)) is not None:
                metrics.update(score.numbers)
        for metric in sorted(metrics):
            if metric in self.values or len(self.values) < MAX_METRICS:
                number = result.reduce(self._scorer, self._reducer, metric)
                if number is not None:
                    self.values.setdefault(metric, {})[result.id] = number
        self._group(result)

    @property
    def metric(self) -> str | None:
        """The plain value, or the first metric by name; None without any score."""
        return min(self.values, default=None)

    def _group(self, result: SampleResult) -> None:
        for key, value in result.metadata.items():
            name = group_name(value)
            if name is None or key in self.ungrouped:
                continue
            values = self.groups.setdefault(key, {})
            values.setdefault(name, []).append(result.id)
            if len(values) > MAX_GROUPS:
                del self.groups[key]
                self.ungrouped.add(key)


NAME_OF_TEST = "paired t-test, adjusted"

MAX_GROUP_KEYS = 40
"""Keys of the metadata by which there is a breakdown."""


class Metric(NamedTuple):
    """A metric of a scorer, under a reducer."""

    scorer: str
    metric: str
    reducer: str

    @property
    def name(self) -> str:
        return f"{metric_name(self.scorer, self.metric)}, {self.reducer}"


class BatchComparison(NamedTuple):
    """A batch against the first; `groups` are by key and value of the first batch's metadata.

    `ungrouped` are keys that have too many values, or exceed the number of keys for a breakdown.
    """

    name: str
    comparison: Comparison
    groups: dict[str, dict[str, Comparison]]
    ungrouped: tuple[str, ...] = ()


def compare_batches(
    name: str, before: ScoresBySample, after: ScoresBySample, metric: str
) -> BatchComparison:
    """Compare batch `name` with the first batch, `before`, by one metric."""
    old, new = before.values.get(metric, {}), after.values.get(metric, {})
    groups = {
        key: {
            value: compare(_subset(old, values[value]), _subset(new, values[value]))
            for value in sorted(values, key=number_first)
        }
        for key, values in sorted(before.groups.items())[:MAX_GROUP_KEYS]
    }
    ungrouped = sorted(before.ungrouped | (before.groups.keys() - groups.keys()))
    return BatchComparison(name, compare(old, new), groups, tuple(ungrouped))


def _subset(values: dict[str, float], ids: Sequence[str]) -> dict[str, float]:
    return {id_: values[id_] for id_ in ids if id_ in values}


def verdict(comparison: Comparison) -> str:
    """Say in a sentence or two whether the difference is more than noise."""
    if not comparison.pairs or comparison.difference is None or comparison.p_value is None:
        return "No sample has a score in both: nothing can be compared."
    if not comparison.better and not comparison.worse:
        return "No sample has another score than before."
    direction = "up" if comparison.difference > 0 else "down"
    chance, test = p_value(comparison.p_value), NAME_OF_TEST
    equals = "" if chance.startswith("<") else "= "
    if comparison.significant:
        return f"More than noise: the score went {direction} (p {equals}{chance}, {test})."
    chances = share(comparison.p_value, 1)
    return (
        f"Not more than noise: where nothing has changed, {chances} of comparisons show at least "
        f"this much (p {equals}{chance}, {test})."
    )
