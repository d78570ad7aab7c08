"""One of the batches that are compared: a number for each sample, and the groups it is in."""

from collections.abc import Iterable

from evaluation.result import SampleResult
from evaluation.tally import MOST_GROUPS, group_name

MOST_METRICS = 100


class Side:
    """`values` are by metric and by the sample's id, under one scorer and one reducer.

    `scorers` are all that have said anything; `groups` are the ids of samples by key and value of
    their metadata, but for keys that have too many values.
    """

    def __init__(self, scorer: str, reducer: str) -> None:
        self.scorers: set[str] = set()
        self.values: dict[str, dict[str, float]] = {}
        self.samples = 0
        self._scorer = scorer
        self._reducer = reducer
        self.groups: dict[str, dict[str, list[str]]] = {}
        self.too_many: set[str] = set()

    def add(self, result: SampleResult) -> None:
        """Raises ValueError where there is no such reducer."""
        self.samples += 1
        metrics: set[str] = set()
        for attempt in result.final:
            self.scorers.update(attempt.scores)
            if (score := attempt.scores.get(self._scorer)) is not None:
                metrics.update(score.numbers)
        for metric in sorted(metrics):
            if metric in self.values or len(self.values) < MOST_METRICS:
                number = result.reduced(self._scorer, self._reducer, metric)
                if number is not None:
                    self.values.setdefault(metric, {})[result.id] = number
        self._group(result)

    @property
    def metric(self) -> str | None:
        """The plain value, or the first metric by name; None where there is nothing."""
        return min(self.values, default=None)

    def _group(self, result: SampleResult) -> None:
        for key, value in result.metadata.items():
            name = group_name(value)
            if name is None or key in self.too_many:
                continue
            values = self.groups.setdefault(key, {})
            values.setdefault(name, []).append(result.id)
            if len(values) > MOST_GROUPS:
                del self.groups[key]
                self.too_many.add(key)


def side(results: Iterable[SampleResult], scorer: str, reducer: str) -> Side:
    found = Side(scorer, reducer)
    for result in results:
        found.add(result)
    return found
