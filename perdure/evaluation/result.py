"""The result of a sample: its attempts with their scores, failures and usage."""

from typing import Literal, Self, TypeAlias

from pydantic import Field, JsonValue, model_validator

from perdure.agent.loop.attempt import AttemptStatus
from perdure.evaluation.reducers import find_reducer
from perdure.evaluation.score import Score
from perdure.events.base import Tolerant
from perdure.events.usage import Usage

FailureKind: TypeAlias = Literal["infrastructure", "configuration", "agent", "sample", "scorer"]
"""The cause of a failure, and so who has to act: in this order a retry, the operator, nobody, the
author of the dataset, the author of the scorer."""

LIMIT_CODES = ("max_iterations", "max_budget", "max_tokens", "max_events", "deadline")
"""Error codes of the sample's own limits."""

OVERFLOW_CODE = "context_overflow"
"""The error code of the model's own limit."""

FAILURE_KINDS: dict[str, FailureKind] = {
    "auth": "configuration",
    "quota": "configuration",
    "model_not_found": "configuration",
    "bad_request": "configuration",
    "tool_not_found": "configuration",
    "extension_not_found": "configuration",
    "script_exhausted": "configuration",
    "recording_exhausted": "configuration",
    "content": "agent",
    "setup_failed": "sample",
}
"""The kind of a failure by the conversation's error code; other codes are `infrastructure`."""


class AttemptFailure(Tolerant):
    """The reason for which an attempt has no score; a failure never counts as a score of 0."""

    kind: FailureKind
    code: str
    detail: str = ""


def failure_of_code(code: str, detail: str = "") -> AttemptFailure | None:
    """Classify the error that ended a conversation; None for a limit, which leaves a score."""
    if code in LIMIT_CODES or code == OVERFLOW_CODE:
        return None
    return AttemptFailure(kind=FAILURE_KINDS.get(code, "infrastructure"), code=code, detail=detail)


class AttemptResult(Tolerant):
    """The result of one conversation with its scores. `epoch` and `number` count from 0."""

    conversation_id: str
    epoch: int = Field(default=0, ge=0)
    number: int = Field(default=0, ge=0)
    """The number of earlier attempts at the epoch."""
    status: AttemptStatus
    scores: dict[str, Score] = Field(default_factory=dict)
    answer: str | None = None
    failure: AttemptFailure | None = None
    limit: str | None = None
    """The code of the limit that ended it."""
    stuck: bool = False
    usage: Usage = Usage()
    """The usage of the agent."""
    grading: Usage = Usage()
    """The usage of grading models."""
    seconds: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    turns: int = Field(default=0, ge=0)
    """The number of the model's answers."""
    tool_calls: int = Field(default=0, ge=0)
    tool_errors: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _check_status(self) -> Self:
        if (self.status == "failed") != (self.failure is not None):
            raise ValueError("what failed has a failure, and nothing else has")
        if self.failure is not None and self.scores:
            raise ValueError("a failure is never a score")
        if self.status == "limited" and self.limit is None:
            raise ValueError("what ran into a limit says into which")
        return self


class SampleResult(Tolerant):
    """The result of a sample, with every attempt in order."""

    id: str
    target: tuple[str, ...] = ()
    metadata: dict[str, JsonValue] = Field(default_factory=dict)
    attempts: tuple[AttemptResult, ...] = ()

    @property
    def final_attempts(self) -> tuple[AttemptResult, ...]:
        """The newest attempt of each epoch, which is the one that counts."""
        newest: dict[int, AttemptResult] = {}
        for attempt in sorted(self.attempts, key=lambda attempt: (attempt.epoch, attempt.number)):
            newest[attempt.epoch] = attempt
        return tuple(newest.values())

    def status(self, epochs: int = 1) -> Literal[AttemptStatus, "missing"]:
        """Return the sample's status: failed or missing as soon as one epoch is."""
        attempts = self.final_attempts
        statuses = {attempt.status for attempt in attempts}
        if "failed" in statuses:
            return "failed"
        if len(attempts) < epochs:
            return "missing"
        return "limited" if "limited" in statuses else "scored"

    def numbers(self, scorer: str, metric: str = "") -> list[float]:
        """Return the metric in each epoch that has it."""
        scores = [attempt.scores.get(scorer) for attempt in self.final_attempts]
        return [score.numbers[metric] for score in scores if score and metric in score.numbers]

    def reduce(self, scorer: str, by: str = "mean", metric: str = "") -> float | None:
        """Reduce the metric over epochs; None if too few epochs have it.

        Raises ValueError if there is no such reducer.
        """
        numbers = self.numbers(scorer, metric)
        return find_reducer(by)(numbers) if numbers else None
