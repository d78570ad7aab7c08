"""What a page about a batch needs, gathered from results that come one by one."""

from typing import NamedTuple

from evaluation.report.causes import Causes
from evaluation.report.rows import Rows
from evaluation.report.spread import Spread
from evaluation.result import SampleResult
from evaluation.spec import BatchSpec
from evaluation.summary import Summary
from evaluation.tally import Tally


class About(NamedTuple):
    """What is told of a batch beside its results.

    `expected` counts epochs of samples; `running` is None where nobody was asked. `ui` is the
    address of Temporal's page, `conversations` that of the folder with the exported conversations,
    seen from the page. `made` says when the page was made.
    """

    spec: BatchSpec
    expected: int
    running: int | None = None
    ui: str | None = None
    namespace: str = "default"
    conversations: str | None = None
    made: str = ""


class Gathered:
    """Memory does not grow with the number of results. Costs and times are of what counts."""

    def __init__(self, spec: BatchSpec) -> None:
        self.samples = 0
        self.costs = Spread()
        self.seconds = Spread()
        self.turns = Spread(whole=True)
        self.causes = Causes()
        self.rows = Rows(next((one.called for one in spec.scorers), None))
        self._tally = Tally(spec.reducers)

    def add(self, result: SampleResult) -> None:
        """A sample with all its attempts; each comes once."""
        self.samples += 1
        self._tally.add(result)
        self.causes.add(result)
        self.rows.add(result)
        for attempt in result.final:
            self.costs.add(max(0.0, attempt.usage.cost + attempt.grading.cost))
            self.seconds.add(attempt.seconds)
            self.turns.add(attempt.turns)

    def summary(self, about: About) -> Summary:
        return self._tally.summary(about.expected, about.running or 0)
