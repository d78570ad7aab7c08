"""Results, each in a line."""

from typing import Any

from evaluation.result import Attempt, Failure, SampleResult
from evaluation.sample import conversation_id
from evaluation.score import Score
from events.usage import Usage


def attempt(value: Any = None, epoch: int = 0, number: int = 0, **fields: Any) -> Attempt:
    """Scored by `exact` where there is a value, else failed."""
    scores = {} if value is None else {"exact": Score(value=value)}
    failure = None if scores else Failure(kind="infrastructure", code="timeout")
    status = "failed" if failure else "limited" if "limit" in fields else "scored"
    given = {
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
    return Attempt.model_validate(given | fields)


def result(name: str, *values: Any, **metadata: Any) -> SampleResult:
    """One attempt for each epoch."""
    attempts = tuple(attempt(value, epoch) for epoch, value in enumerate(values))
    return SampleResult(id=name, metadata=metadata, attempts=attempts)
