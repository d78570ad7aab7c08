"""Scores, the base classes of scorers, and the outcome of an attempt that they score."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, JsonValue, StrictBool, ValidationError

from perdure.agent.loop.status import Status
from perdure.evaluation.sample import Sample
from perdure.events.base import Frozen, Tolerant
from perdure.events.validation_errors import describe_errors

GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Correct, partly correct, incorrect, no answer: the letters of inspect_ai."""

FiniteNumber: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]
Metric: TypeAlias = StrictBool | FiniteNumber | str
Value: TypeAlias = Metric | dict[str, Metric]


class ScoringError(ValueError):
    """The attempt cannot be scored: a failure of the scorer, which is never a score of 0."""


class Outcome(Tolerant):
    """The outcome of an attempt: the agent's answer, and all messages in the results format.

    `workspace` is its folder of files on the machine that scores, if it still exists.
    """

    text: str
    messages: tuple[dict[str, JsonValue], ...] = ()
    status: Status = "finished"
    conversation_id: str | None = None
    workspace: str | None = None


class Score(Frozen):
    """A score: one value, or one per metric; `answer` is the answer found in the agent's text."""

    value: Value
    answer: str | None = None
    explanation: str | None = None
    metadata: dict[str, JsonValue] = Field(default_factory=dict)

    @property
    def numbers(self) -> dict[str, float]:
        """The metrics with a numeric value; a plain value is the metric ""."""
        metrics = self.value if isinstance(self.value, dict) else {"": self.value}
        values = {name: metric_number(metric) for name, metric in metrics.items()}
        return {name: value for name, value in values.items() if value is not None}


def metric_number(metric: Metric) -> float | None:
    """Convert a metric to a number, grades by GRADES; None for any other word."""
    return GRADES.get(metric) if isinstance(metric, str) else float(metric)


class Scorer(Frozen):
    """The base class of scorers; `name` is the name of its scores, by default its kind."""

    name: str | None = Field(default=None, min_length=1, max_length=100)

    @property
    def score_name(self) -> str:
        kind: str = getattr(self, "kind")  # noqa: B009 - each kind declares its own
        return self.name or kind

    def check(self) -> None:
        """Check what is too slow to check at each parsing of a spec. Raises ValueError."""


class TextScorer(Scorer, ABC):
    """A scorer that needs only the text of the agent's answer."""

    @abstractmethod
    def score(self, sample: Sample, text: str) -> Score:
        """Score the text. Raises ScoringError."""


ScoreSource: TypeAlias = Literal["exit_code", "score"]


def parse_score(value: Any) -> Score:
    """Parse the result of a user's function or program. Raises ScoringError if it is no score."""
    try:
        if isinstance(value, Score):
            return value
        if isinstance(value, Mapping) and "value" in value and value.keys() <= _SCORE_FIELDS:
            return Score.model_validate(dict(value))
        return Score.model_validate({"value": value})
    except ValidationError as error:
        raise ScoringError(f"{str(value)[:100]!r} is no score: {describe_errors(error)}") from error


def require_targets(sample: Sample) -> tuple[str, ...]:
    """Return the sample's targets. Raises ScoringError if it has none."""
    targets = tuple(target for target in sample.target if target.strip())
    if not targets:
        raise ScoringError(
            f"The sample {sample.id!r} has no target to compare with: give it one, or map the "
            "column that holds it with `fields = {target = ...}`."
        )
    return targets


def is_close(first: float, second: float, tolerance: float) -> bool:
    """Tell whether two numbers are equal up to a relative tolerance."""
    if first == second:
        return True
    try:
        return math.isclose(first, second, rel_tol=tolerance)
    except OverflowError:  # an integer that no float can hold
        return False


_SCORE_FIELDS = frozenset(Score.model_fields)
