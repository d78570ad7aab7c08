"""What came of a sample: every attempt at it, with what it cost."""

from collections.abc import Iterable
from typing import Literal, Self, TypeAlias

from pydantic import Field, JsonValue, model_validator

from evaluation.reduce import reducer
from evaluation.score import Score
from events.base import Tolerant
from events.usage import Usage

FailureKind: TypeAlias = Literal["infrastructure", "configuration", "agent", "sample", "scorer"]
"""Who has to act: time, the operator, nobody, the author of the dataset, that of the scorer."""

AttemptStatus: TypeAlias = Literal["scored", "limited", "failed"]

LIMITS = ("max_iterations", "max_budget", "max_tokens", "max_events", "deadline")
"""Codes of an error that are limits which the sample was given."""

OVERFLOW = "context_overflow"
"""The limit that a model has of its own."""

FAILURES: dict[str, FailureKind] = {
    "auth": "configuration",
    "quota": "configuration",
    "model_not_found": "configuration",
    "bad_request": "configuration",
    "tool_not_found": "configuration",
    "script_exhausted": "configuration",
    "recording_exhausted": "configuration",
    "content": "agent",
    "setup_failed": "sample",
}
"""By the code of the error that ended the conversation; any other is the infrastructure's."""


class Failure(Tolerant):
    """Why there is no score. It is never one of 0."""

    kind: FailureKind
    code: str
    detail: str = ""


def ended_by(code: str, detail: str = "") -> Failure | None:
    """What an error means that ended a conversation; None for a limit, and so for a score."""
    if code in LIMITS or code == OVERFLOW:
        return None
    return Failure(kind=FAILURES.get(code, "infrastructure"), code=code, detail=detail)


class Attempt(Tolerant):
    """One conversation, from its first message to its scores.

    `number` counts the attempts at an `epoch`, both from 0. `limit` is the code of the limit that
    ended it. `usage` is the agent's, `grading` that of models which scored it. `seconds` is from
    start to end, `turns` counts the model's answers.
    """

    conversation_id: str
    epoch: int = Field(default=0, ge=0)
    number: int = Field(default=0, ge=0)
    status: AttemptStatus
    scores: dict[str, Score] = Field(default_factory=dict)
    answer: str | None = None
    failure: Failure | None = None
    limit: str | None = None
    stuck: bool = False
    usage: Usage = Usage()
    grading: Usage = Usage()
    seconds: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    turns: int = Field(default=0, ge=0)
    tool_calls: int = Field(default=0, ge=0)
    tool_errors: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _is_one_of_three(self) -> Self:
        if (self.status == "failed") != (self.failure is not None):
            raise ValueError("what failed has a failure, and nothing else has")
        if self.failure is not None and self.scores:
            raise ValueError("a failure is never a score")
        if self.status == "limited" and self.limit is None:
            raise ValueError("what ran into a limit says into which")
        return self


class SampleResult(Tolerant):
    """Every attempt, in the order they were made."""

    id: str
    target: tuple[str, ...] = ()
    metadata: dict[str, JsonValue] = Field(default_factory=dict)
    attempts: tuple[Attempt, ...] = ()

    @property
    def final(self) -> tuple[Attempt, ...]:
        """The attempt that counts for each epoch that has one: the newest."""
        newest: dict[int, Attempt] = {}
        for attempt in sorted(self.attempts, key=lambda one: (one.epoch, one.number)):
            newest[attempt.epoch] = attempt
        return tuple(newest.values())

    def status(self, epochs: int = 1) -> Literal[AttemptStatus, "missing"]:
        """Of the sample as a whole: as soon as an epoch is missing or failed, it is so too."""
        final = self.final
        statuses = {one.status for one in final}
        if "failed" in statuses:
            return "failed"
        if len(final) < epochs:
            return "missing"
        return "limited" if "limited" in statuses else "scored"

    def numbers(self, scorer: str, metric: str = "") -> list[float]:
        """The metric in each epoch that has it."""
        scores = (one.scores[scorer] for one in self.final if scorer in one.scores)
        return [score.numbers[metric] for score in scores if metric in score.numbers]

    def reduced(self, scorer: str, by: str = "mean", metric: str = "") -> float | None:
        """None where no epoch has the metric, or too few. Raises ValueError for no reducer."""
        numbers = self.numbers(scorer, metric)
        return reducer(by)(numbers) if numbers else None


def added(result: SampleResult, attempt: Attempt) -> SampleResult:
    """The result with one more attempt; one with the same conversation is replaced."""
    others = [one for one in result.attempts if one.conversation_id != attempt.conversation_id]
    attempts = sorted([*others, attempt], key=lambda one: (one.epoch, one.number))
    return result.model_copy(update={"attempts": tuple(attempts)})


def rescored(attempt: Attempt, scores: dict[str, Score]) -> Attempt:
    """The attempt with scores that were made again, from its log.

    What had failed for its scorer has not any more.
    """
    status = "limited" if attempt.limit is not None else "scored"
    update = {"scores": scores, "failure": None, "status": status}
    return Attempt.model_validate({**dict(attempt), **update})


def reduced_by_sample(
    results: Iterable[SampleResult], scorer: str, by: str = "mean", metric: str = ""
) -> dict[str, float]:
    """One number for each sample that has one: what two runs are compared by."""
    numbers = ((one.id, one.reduced(scorer, by, metric)) for one in results)
    return {name: number for name, number in numbers if number is not None}
