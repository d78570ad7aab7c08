"""Short constructors of results."""

from typing import Any

from perdure.evaluation.result import AttemptFailure, AttemptResult, SampleResult
from perdure.evaluation.sample import conversation_id
from perdure.evaluation.score import Score
from perdure.events.usage import Usage


def attempt(value: Any = None, epoch: int = 0, number: int = 0, **fields: Any) -> AttemptResult:
    """Make an attempt scored by `exact`, or a failed one without a value."""
    scores = {} if value is None else {"exact": Score(value=value)}
    failure = None if scores else AttemptFailure(kind="infrastructure", code="timeout")
    status = "failed" if failure else "limited" if "limit" in fields else "scored"
    base = {
        "conversation_id": conversation_id("b", "s", epoch, number),
        "epoch": epoch,
        "number": number,
        "status": status,
        "scores": scores,
        "failure": failure,
        "usage": Usage(prompt_tokens=10, completion_tokens=5, cost=0.5),
        "seconds": 2.0,
        "turns": 3,
    }
    return AttemptResult.model_validate(base | fields)


def result(name: str, *values: Any, **metadata: Any) -> SampleResult:
    """Make a result with one attempt per value, each in its own epoch."""
    attempts = tuple(attempt(value, epoch) for epoch, value in enumerate(values))
    return SampleResult(id=name, metadata=metadata, attempts=attempts)
