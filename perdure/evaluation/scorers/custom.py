"""A scorer by a Python function, which an activity loads and calls."""

from typing import ClassVar, Literal

from pydantic import Field, JsonValue

from perdure.agent.spec import ModelSpec
from perdure.evaluation.score import Scorer

CUSTOM_SCORER_TIMEOUT = 600.0
"""Seconds for a user's function."""


class CustomScorer(Scorer):
    """A scorer that calls `function`, a `module:attribute`, with Sample, Outcome and `options`.

    The function may be a coroutine function; it returns a Score or the value of one.
    """

    kind: Literal["custom"] = "custom"
    function: str = Field(pattern=r"^[\w.]+:[\w.]+$")
    options: dict[str, JsonValue] = Field(default_factory=dict)
    needs_workspace: ClassVar[bool] = True

    def time_limit(self, model: ModelSpec) -> float:  # noqa: ARG002 - of the base class
        return CUSTOM_SCORER_TIMEOUT

    @property
    def score_name(self) -> str:
        return self.name or self.function.rpartition(":")[2]
