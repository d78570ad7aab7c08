"""Which attempts are shown one by one: what went wrong first, and never too many."""

from collections import Counter
from typing import Literal, NamedTuple, TypeAlias, get_args

from evaluation.report import words
from evaluation.result import Attempt, SampleResult
from evaluation.score import Score

MOST = 2000

LONGEST = 200
"""Characters of an answer, a target or the scores of a row."""

Kind: TypeAlias = Literal["failed", "wrong", "limited", "right"]
"""In the order they are shown. Wrong is a score below 1, whether or not a limit was hit."""


class Row(NamedTuple):
    """An attempt that counts, with its texts shortened."""

    kind: Kind
    sample: str
    epoch: int
    status: str
    scores: str
    answer: str
    target: str
    cost: float
    seconds: float
    turns: int
    conversation_id: str


class Rows:
    """The first of each kind, and how many there are. `scorer` says what is wrong."""

    def __init__(self, scorer: str | None) -> None:
        self.counts: Counter[Kind] = Counter()
        self._scorer = scorer
        self._rows: dict[Kind, list[Row]] = {kind: [] for kind in get_args(Kind)}

    def add(self, result: SampleResult) -> None:
        for attempt in result.final:
            kind = self._kind(attempt)
            self.counts[kind] += 1
            if len(self._rows[kind]) < MOST:
                self._rows[kind].append(_row(kind, result, attempt))

    def shown(self) -> list[Row]:
        return [row for rows in self._rows.values() for row in rows][:MOST]

    def hidden(self) -> Counter[Kind]:
        """How many of each kind are not shown."""
        return self.counts - Counter(row.kind for row in self.shown())

    def _kind(self, attempt: Attempt) -> Kind:
        if attempt.status == "failed":
            return "failed"
        numbers = _judged(attempt, self._scorer)
        if numbers and min(numbers) < 1:
            return "wrong"
        return "limited" if attempt.limit is not None else "right"


def _judged(attempt: Attempt, scorer: str | None) -> list[float]:
    """The numbers of the scorer that decides, or of any where it has said nothing."""
    decisive = attempt.scores.get(scorer or "")
    scores = [decisive] if decisive is not None else list(attempt.scores.values())
    return [number for score in scores for number in score.numbers.values()]


def _row(kind: Kind, result: SampleResult, attempt: Attempt) -> Row:
    failure = attempt.failure
    answer = attempt.answer or ""
    if failure is not None:
        answer = f"{failure.kind}, {failure.code}: {failure.detail}".rstrip(": ")
    status = f"limited ({attempt.limit})" if attempt.limit is not None else attempt.status
    return Row(
        kind=kind,
        sample=words.shortened(result.id, 200),
        epoch=attempt.epoch,
        status=status,
        scores=words.shortened(_scores(attempt.scores), LONGEST),
        answer=words.shortened(answer, LONGEST),
        target=words.shortened(" | ".join(result.target), LONGEST),
        cost=attempt.usage.cost + attempt.grading.cost,
        seconds=attempt.seconds,
        turns=attempt.turns,
        conversation_id=attempt.conversation_id,
    )


def _scores(scores: dict[str, Score]) -> str:
    told = []
    for scorer, score in scores.items():
        metrics = score.value if isinstance(score.value, dict) else {"": score.value}
        told += [
            f"{words.metric_name(scorer, metric)}: {words.value(value)}"
            for metric, value in metrics.items()
        ]
    return ", ".join(told)
