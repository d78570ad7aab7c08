"""What one scorer says of one attempt."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, JsonValue, StrictBool, ValidationError

from agent.status import Status
from evaluation.faults import faults
from evaluation.sample import Sample
from events.base import Frozen, Tolerant

GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Correct, partly correct, incorrect, no answer: the letters of inspect_ai."""

Number: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]
Metric: TypeAlias = StrictBool | Number | str
Value: TypeAlias = Metric | dict[str, Metric]


class Unscorable(ValueError):
    """Nothing can be said of the attempt: that is a failure of the scoring, never a score of 0."""


class Outcome(Tolerant):
    """What an agent left behind: its answer, and all messages as the results format has them.

    `workspace` is the folder with its files on the machine that scores, where they are still there.
    """

    text: str
    messages: tuple[dict[str, JsonValue], ...] = ()
    status: Status = "finished"
    conversation_id: str | None = None
    workspace: str | None = None


class Score(Frozen):
    """`answer` is what was found in the agent's words; a table of metrics counts one by one."""

    value: Value
    answer: str | None = None
    explanation: str | None = None
    metadata: dict[str, JsonValue] = Field(default_factory=dict)

    @property
    def numbers(self) -> dict[str, float]:
        """The metrics that can be counted with; that of a plain value has no name."""
        metrics = self.value if isinstance(self.value, dict) else {"": self.value}
        found = {name: number(metric) for name, metric in metrics.items()}
        return {name: value for name, value in found.items() if value is not None}


def number(metric: Metric) -> float | None:
    """True and a grade of C are 1, a P is a half; a word that is no grade has no number."""
    return GRADES.get(metric) if isinstance(metric, str) else float(metric)


class Scorer(Frozen):
    """`name` is what its scores are called; nothing means its kind."""

    name: str | None = Field(default=None, min_length=1, max_length=100)

    @property
    def called(self) -> str:
        kind: str = getattr(self, "kind")  # noqa: B009 - each kind declares its own
        return self.name or kind

    def check(self) -> None:
        """Look at what is too much for every reading of a spec. Raises ValueError."""


class TextScorer(Scorer, ABC):
    """A scorer that needs the agent's words and nothing else."""

    @abstractmethod
    def score(self, sample: Sample, text: str) -> Score:
        """Raises Unscorable."""


Reads: TypeAlias = Literal["exit_code", "score"]


def score_of(value: Any) -> Score:
    """The score that somebody's function gave, or a program wrote. Raises Unscorable."""
    try:
        if isinstance(value, Score):
            return value
        if isinstance(value, Mapping) and "value" in value and value.keys() <= _FIELDS:
            return Score.model_validate(dict(value))
        return Score.model_validate({"value": value})
    except ValidationError as error:
        raise Unscorable(f"{str(value)[:100]!r} is no score: {faults(error)}") from error


def targets(sample: Sample) -> tuple[str, ...]:
    """What would be right. Raises Unscorable where nothing is known to be."""
    if not any(one.strip() for one in sample.target):
        raise Unscorable(
            f"The sample {sample.id!r} has no target to compare with: give it one, or map the "
            "column that holds it with `fields = {target = ...}`."
        )
    return tuple(one for one in sample.target if one.strip())


def close(one: float, other: float, tolerance: float) -> bool:
    """Whether two numbers are the same, up to a part of the larger one."""
    if one == other:
        return True
    try:
        return math.isclose(one, other, rel_tol=tolerance)
    except OverflowError:  # an integer that no float can hold
        return False


_FIELDS = frozenset(Score.model_fields)
