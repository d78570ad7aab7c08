"""Any Python function as a scorer; what finds and calls it is no matter of this file."""

from typing import Any, Literal

from pydantic import Field, JsonValue

from evaluation.score import Score, Scorer, score_of


class Custom(Scorer):
    """`function` is `module:attribute`, called with a Sample, an Outcome and the `options`.

    It may be a coroutine function, and gives a Score or the value of one.
    """

    kind: Literal["custom"] = "custom"
    function: str = Field(pattern=r"^[\w.]+:[\w.]+$")
    options: dict[str, JsonValue] = Field(default_factory=dict)

    @property
    def called(self) -> str:
        return self.name or self.function.rpartition(":")[2]

    def read(self, value: Any) -> Score:
        """What the function gave. Raises Unscorable."""
        return score_of(value)
