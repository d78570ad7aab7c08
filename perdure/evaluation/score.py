"""Scores, the base classes of scorers, and the outcome of an attempt that they score."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, TypeAlias

from pydantic import Field, JsonValue, StrictBool, ValidationError

from perdure.agent.loop.status import Status
from perdure.agent.spec import ModelSpec
from perdure.evaluation.sample import Sample
from perdure.events.base import Frozen, Tolerant
from perdure.events.validation_errors import describe_errors

GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Correct, partly correct, incorrect, no answer: the letters of inspect_ai."""

TEXT_SCORER_TIMEOUT = 60.0
"""Seconds for a scorer that needs only the agent's text."""

Metric: TypeAlias = StrictBool | Annotated[float, Field(allow_inf_nan=False)] | str
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
    def metrics(self) -> dict[str, Metric]:
        """The values by metric; a plain value is the metric ""."""
        return self.value if isinstance(self.value, dict) else {"": self.value}

    @property
    def numbers(self) -> dict[str, float]:
        """The metrics with a numeric value."""
        values = {name: metric_number(metric) for name, metric in self.metrics.items()}
        return {name: value for name, value in values.items() if value is not None}


def metric_number(metric: Metric) -> float | None:
    """Convert a metric to a number, grades by GRADES; None for any other word."""
    return GRADES.get(metric) if isinstance(metric, str) else float(metric)


class Scorer(Frozen):
    """The base class of scorers; `name` is the name of its scores, by default its kind."""

    name: str | None = Field(default=None, min_length=1, max_length=100)
    needs_workspace: ClassVar[bool] = False

    @property
    def score_name(self) -> str:
        kind: str = getattr(self, "kind")  # noqa: B009 - each kind declares its own
        return self.name or kind

    def time_limit(self, model: ModelSpec) -> float:  # noqa: ARG002 - others need it
        """Return the timeout in seconds; `model` is the agent's."""
        return TEXT_SCORER_TIMEOUT

    def check(self) -> None:
        """Check what is too slow to check at each parsing of a spec. Raises ValueError."""


class TextScorer(Scorer, ABC):
    """A scorer that needs only the text of the agent's answer."""

    @abstractmethod
    def score(self, sample: Sample, text: str) -> Score:
        """Score the text. Raises ScoringError, for example without a target."""


def parse_score(value: Any) -> Score:
    """Parse the result of a user's function or program. Raises ScoringError if it is no score."""
    try:
        if isinstance(value, Score):
            return value
        fields = Score.model_fields.keys()
        whole = isinstance(value, Mapping) and "value" in value and value.keys() <= fields
        return Score.model_validate(dict(value) if whole else {"value": value})
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
