"""How far a batch is: what its workflow tells while it runs, small whatever its size."""

from typing import Literal, TypeAlias

from pydantic import Field

from agent.trial import Scored
from evaluation.result import Attempt
from events.base import Tolerant
from events.usage import Usage

BatchStatus: TypeAlias = Literal["running", "paused", "finished", "stopped"]
"""`stopped`: it came to its end with samples that were never run."""

MEMO = "progress"
"""What a batch's workflow keeps it under, for whoever describes the workflow."""

MOST_NAMED = 50
"""Scorers and metrics that are told of while it runs."""


class Mean(Tolerant):
    """Of so many numbers, their sum and the sum of their squares."""

    count: int = 0
    total: float = 0.0
    squares: float = 0.0

    @property
    def mean(self) -> float | None:
        return self.total / self.count if self.count else None


class Progress(Tolerant):
    """Of epochs of samples: expected = scored + limited + failed + running + missing.

    `reason` says why it is paused or stopped. `scores` are by scorer, or by `scorer/metric`, over
    epochs that were scored. `failures` are by kind, `limits` by code. `spent` and the counts behind
    it are of every attempt. `seconds` is how long it has been at work, without its pauses, and
    `finished` how many epochs came to an end in them: what is left can be estimated by these.
    `cost` and `tokens` are its limits, `reserved` is what running samples may still spend. Where it
    is run in `parts`, these tell more exactly how far they are.
    """

    name: str
    status: BatchStatus = "running"
    reason: str | None = None
    expected: int = 0
    scored: int = 0
    limited: int = 0
    failed: int = 0
    running: int = 0
    scores: dict[str, Mean] = Field(default_factory=dict)
    failures: dict[str, int] = Field(default_factory=dict)
    limits: dict[str, int] = Field(default_factory=dict)
    newest_failure: str | None = None
    attempts: int = 0
    spent: Usage = Usage()
    turns: int = 0
    tool_calls: int = 0
    tool_errors: int = 0
    stuck: int = 0
    started: str | None = None
    seconds: float = 0.0
    finished: int = 0
    concurrency: int = 0
    cost: float | None = None
    tokens: int | None = None
    reserved: float = 0.0
    parts: int = 1

    @property
    def done(self) -> int:
        return self.scored + self.limited

    @property
    def missing(self) -> int:
        return max(0, self.expected - self.done - self.failed - self.running)

    @property
    def seconds_left(self) -> float | None:
        """By the pace so far; None while nothing has come to its end."""
        if not self.finished:
            return None
        return (self.running + self.missing) * self.seconds / self.finished


def spent_by(progress: Progress, scored: Scored) -> Progress:
    """The progress once an attempt has been paid for, whatever came of it."""
    return progress.model_copy(
        update={
            "attempts": progress.attempts + 1,
            "spent": together_spent(progress.spent, scored.usage),
            "turns": progress.turns + scored.turns,
            "tool_calls": progress.tool_calls + scored.tool_calls,
            "tool_errors": progress.tool_errors + scored.tool_errors,
        }
    )


def counted(progress: Progress, scored: Scored, sign: int = 1) -> Progress:
    """The progress once this is what counts for an epoch; with -1, once it does not any more."""
    changes: dict[str, object] = {
        scored.status: getattr(progress, scored.status) + sign,
        "stuck": progress.stuck + sign * scored.stuck,
    }
    if scored.status == "failed":
        kind = scored.failure or "infrastructure"
        changes["failures"] = _more(progress.failures, kind, sign)
        if sign > 0:
            changes["newest_failure"] = f"{scored.code}: {scored.detail}".rstrip(": ")
    else:
        if scored.code is not None:
            changes["limits"] = _more(progress.limits, scored.code, sign)
        scores = dict(progress.scores)
        for name, number in scored.numbers.items():
            if name in scores or len(scores) < MOST_NAMED:
                before = scores.get(name, Mean())
                scores[name] = Mean(
                    count=before.count + sign,
                    total=before.total + sign * number,
                    squares=before.squares + sign * number * number,
                )
        changes["scores"] = {name: one for name, one in scores.items() if one.count}
    return progress.model_copy(update=changes)


def together(name: str, parts: list[Progress]) -> Progress:
    """The progress of a batch that is run in parts."""
    whole = Progress(name=name)
    for part in parts:
        scores = dict(whole.scores)
        for label, one in part.scores.items():
            before = scores.get(label, Mean())
            scores[label] = Mean(
                count=before.count + one.count,
                total=before.total + one.total,
                squares=before.squares + one.squares,
            )
        added = {
            field: getattr(whole, field) + getattr(part, field)
            for field in (
                *("expected", "scored", "limited", "failed", "running", "attempts", "turns"),
                *("tool_calls", "tool_errors", "stuck", "finished", "concurrency", "reserved"),
            )
        }
        whole = whole.model_copy(
            update={
                **added,
                "scores": scores,
                "spent": together_spent(whole.spent, part.spent),
                "failures": _sum(whole.failures, part.failures),
                "limits": _sum(whole.limits, part.limits),
                "newest_failure": part.newest_failure or whole.newest_failure,
                "reason": whole.reason or part.reason,
                "seconds": max(whole.seconds, part.seconds),
                "started": min(filter(None, (whole.started, part.started)), default=None),
            }
        )
    return whole.model_copy(update={"status": _status(parts)})


def scored_of(attempt: Attempt) -> Scored:
    """What a batch counts of an attempt that is on record."""
    numbers: dict[str, float] = {}
    for scorer, score in attempt.scores.items():
        for metric, value in score.numbers.items():
            numbers[f"{scorer}/{metric}" if metric else scorer] = value
    failure = attempt.failure
    return Scored(
        status=attempt.status,
        numbers=dict(list(numbers.items())[:MOST_NAMED]),
        failure=failure.kind if failure else None,
        code=failure.code if failure else attempt.limit,
        detail=failure.detail[:500] if failure else "",
        stuck=attempt.stuck,
        usage=together_spent(attempt.usage, attempt.grading),
        seconds=attempt.seconds,
        turns=attempt.turns,
        tool_calls=attempt.tool_calls,
        tool_errors=attempt.tool_errors,
    )


def together_spent(one: Usage, other: Usage) -> Usage:
    sums = {name: getattr(one, name) + getattr(other, name) for name in COUNTED}
    return one.model_copy(update=sums)


def standard_error(mean: Mean) -> float | None:
    """Of numbers that do not depend on each other; epochs of one sample do."""
    if mean.count < 2:
        return None
    average = mean.total / mean.count
    variance = max(0.0, mean.squares - mean.count * average * average) / (mean.count - 1)
    return float((variance / mean.count) ** 0.5)


COUNTED = tuple(name for name, value in Usage() if isinstance(value, int | float))


def _more(counts: dict[str, int], name: str, sign: int) -> dict[str, int]:
    found = {**counts, name: counts.get(name, 0) + sign}
    return {key: value for key, value in found.items() if value}


def _sum(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}


def _status(parts: list[Progress]) -> BatchStatus:
    statuses = {part.status for part in parts}
    for status in ("running", "paused", "stopped"):
        if status in statuses:
            return status
    return "finished"
