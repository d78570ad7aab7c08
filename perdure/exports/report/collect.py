"""The data of a batch's page, collected from results one by one in bounded memory."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, get_args

from perdure.evaluation.result import AttemptFailure, AttemptResult, SampleResult
from perdure.evaluation.sample import Sample
from perdure.evaluation.score import Score
from perdure.evaluation.spec import BatchSpec
from perdure.evaluation.summary import Summary, Tally
from perdure.exports.report.formatting import json_value, metric_name, shorten
from perdure.exports.report.plots import Distribution

MAX_CAUSES = 100
OTHER_CAUSES = "(others)"
MAX_ROWS = 2000

RowKind: TypeAlias = Literal["failed", "wrong", "limited", "right"]
"""The kinds of rows in the order of the table. Wrong is a score below 1, limited or not."""


class BatchDescription(NamedTuple):
    """A batch beside its results.

    `expected` counts epochs of samples; `running` is None where no workflow was asked. `ui` is the
    address of Temporal's page, `conversations` that of the folder with the exported conversations,
    relative to the page. `made` is the moment at which the page was made.
    """

    spec: BatchSpec
    expected: int
    running: int | None = None
    ui: str | None = None
    namespace: str = "default"
    conversations: str | None = None
    made: str = ""
    workflow_prefix: str = "conv-"
    """The beginning of the workflow ids of its conversations; their own ids follow."""


@dataclass
class Cause:
    """A cause of failures: `final` attempts count as failed, `repeated` ones were tried again."""

    kind: str
    code: str
    example: str
    sample: str
    final: int = 0
    repeated: int = 0


class Row(NamedTuple):
    """An attempt that counts, with its texts shortened."""

    kind: RowKind
    sample: str
    epoch: int
    status: str
    scores: str
    question: str
    answer: str
    target: str
    cost: float
    seconds: float
    turns: int
    conversation_id: str


class Collected:
    """Everything that a page shows of results. Costs and times are of attempts that count."""

    def __init__(self, spec: BatchSpec) -> None:
        self.samples = 0
        self.costs = Distribution()
        self.seconds = Distribution()
        self.turns = Distribution(whole=True)
        self.row_counts: Counter[RowKind] = Counter()
        self._scorer = next((scorer.score_name for scorer in spec.scorers), "")
        self._tally = Tally(spec.reducers)
        self._causes: dict[tuple[str, str], Cause] = {}
        self._questions: dict[str, str] = {}
        self._rows: dict[RowKind, list[Row]] = {kind: [] for kind in get_args(RowKind)}

    def add(self, result: SampleResult) -> None:
        """Add a sample with all its attempts; each sample is added once."""
        self.samples += 1
        self._tally.add(result)
        final = {(attempt.epoch, attempt.number) for attempt in result.final_attempts}
        for attempt in result.attempts:
            if attempt.failure is not None:
                cause = self._cause(result.id, attempt.failure)
                counts = (attempt.epoch, attempt.number) in final
                cause.final += counts
                cause.repeated += not counts
        for attempt in result.final_attempts:
            self.costs.add(max(0.0, attempt.usage.cost + attempt.grading.cost))
            self.seconds.add(attempt.seconds)
            self.turns.add(attempt.turns)
            kind = self._kind(attempt)
            self.row_counts[kind] += 1
            if len(self._rows[kind]) < MAX_ROWS:
                self._rows[kind].append(_row(kind, result, attempt))

    def summary(self, batch: BatchDescription) -> Summary:
        return self._tally.summary(batch.expected, batch.running or 0)

    def causes(self) -> list[Cause]:
        """List the causes of failures, the most frequent first."""
        return sorted(
            self._causes.values(),
            key=lambda cause: (-cause.final, -cause.repeated, cause.kind, cause.code),
        )

    def rows(self) -> list[Row]:
        """List the first rows of the table, failures first, with the questions that are known."""
        rows = [row for rows in self._rows.values() for row in rows][:MAX_ROWS]
        return [row._replace(question=self._questions.get(row.sample, "")) for row in rows]

    def add_questions(self, samples: Iterable[Sample]) -> None:
        """Note what the samples in the table ask for."""
        shown = {row.sample for row in self.rows()}
        for sample in samples:
            if sample.id in shown:
                self._questions[sample.id] = shorten(sample.question)

    def _cause(self, sample: str, failure: AttemptFailure) -> Cause:
        key = (failure.kind, shorten(failure.code, 100))
        if key not in self._causes and len(self._causes) >= MAX_CAUSES:
            key = (failure.kind, OTHER_CAUSES)
        if key not in self._causes:
            self._causes[key] = Cause(*key, shorten(failure.detail, 400), shorten(sample))
        return self._causes[key]

    def _kind(self, attempt: AttemptResult) -> RowKind:
        if attempt.status == "failed":
            return "failed"
        decisive = attempt.scores.get(self._scorer)
        scores = [decisive] if decisive is not None else attempt.scores.values()
        numbers = [number for score in scores for number in score.numbers.values()]
        if numbers and min(numbers) < 1:
            return "wrong"
        return "limited" if attempt.limit is not None else "right"


def _row(kind: RowKind, result: SampleResult, attempt: AttemptResult) -> Row:
    failure = attempt.failure
    answer = attempt.answer or ""
    if failure is not None:
        answer = f"{failure.kind}, {failure.code}: {failure.detail}".rstrip(": ")
    return Row(
        kind=kind,
        sample=result.id,
        epoch=attempt.epoch,
        status=f"limited ({attempt.limit})" if attempt.limit is not None else attempt.status,
        scores=shorten(", ".join(_scores(attempt.scores))),
        question="",
        answer=shorten(answer),
        target=shorten(" | ".join(result.target)),
        cost=attempt.usage.cost + attempt.grading.cost,
        seconds=attempt.seconds,
        turns=attempt.turns,
        conversation_id=attempt.conversation_id,
    )


def _scores(scores: dict[str, Score]) -> Iterator[str]:
    for scorer, score in scores.items():
        for metric, value in score.metrics.items():
            yield f"{metric_name(scorer, metric)}: {json_value(value)}"
