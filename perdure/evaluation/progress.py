"""The progress of a running batch, of bounded size."""

from collections.abc import Iterable
from functools import reduce
from itertools import islice
from typing import Literal, TypeAlias, TypeVar

from pydantic import Field

from perdure.agent.loop.attempt import AttemptSummary
from perdure.evaluation.result import AttemptResult
from perdure.evaluation.statistics import error_of_mean
from perdure.events.base import Tolerant
from perdure.events.usage import Usage

BatchStatus: TypeAlias = Literal["running", "paused", "finished", "stopped"]
"""The status of a batch; a `stopped` batch has ended with samples that were never run."""

PROGRESS_MEMO = "progress"
"""The memo key of the progress at the batch's workflow."""

MAX_SCORES = 50
"""The most scorers and metrics in a progress."""

MAX_NAMES_AT_WORK = 3
"""The most running samples that a progress names."""

SUMMED = (
    *("expected", "scored", "limited", "failed", "running", "attempts", "spent", "turns"),
    *("tool_calls", "tool_errors", "stuck", "finished", "concurrency", "reserved"),
)
"""The fields that add up over shards."""


class RunningMean(Tolerant):
    """Count, sum and sum of squares of numbers: enough for a running mean and its error."""

    count: int = 0
    total: float = 0.0
    squares: float = 0.0

    @property
    def mean(self) -> float | None:
        return self.total / self.count if self.count else None

    @property
    def standard_error(self) -> float | None:
        """The standard error over epochs, as if epochs of one sample were independent."""
        squared_mean = self.total * self.total / max(1, self.count)
        return error_of_mean(self.count, max(0.0, self.squares - squared_mean))

    def __bool__(self) -> bool:
        return self.count != 0

    def __add__(self, other: "RunningMean") -> "RunningMean":
        return RunningMean(
            count=self.count + other.count,
            total=self.total + other.total,
            squares=self.squares + other.squares,
        )


Sum = TypeVar("Sum", int, RunningMean)


class Progress(Tolerant):
    """The progress of a batch, counted in epochs of samples.

    expected = scored + limited + failed + running + missing.
    """

    name: str
    status: BatchStatus = "running"
    reason: str | None = None
    """The reason for which it is paused or stopped."""
    blocked: bool = False
    """It is paused until somebody mends the reason; it is no pause that a person asked for."""
    expected: int = 0
    scored: int = 0
    limited: int = 0
    failed: int = 0
    running: int = 0
    scores: dict[str, RunningMean] = Field(default_factory=dict)
    """By scorer, or by `scorer/metric`, over scored epochs."""
    failures: dict[str, int] = Field(default_factory=dict)
    """By kind."""
    limits: dict[str, int] = Field(default_factory=dict)
    """By code."""
    newest_failure: str | None = None
    attempts: int = 0
    """The number of all attempts, which the usage and counts below include."""
    spent: Usage = Usage()
    turns: int = 0
    tool_calls: int = 0
    tool_errors: int = 0
    stuck: int = 0
    started: str | None = None
    seconds: float = 0.0
    """The time at work, without pauses."""
    finished: int = 0
    """The epochs that ended in these `seconds`."""
    concurrency: int = 0
    cost: float | None = None
    """The limit in US dollars; `tokens` is the limit in tokens."""
    tokens: int | None = None
    reserved: float = 0.0
    """US dollars that running samples may still spend."""
    parts: int = 1
    """The number of shards."""
    at_work: tuple[str, ...] = ()
    """The ids of some samples that run."""

    @property
    def done(self) -> int:
        return self.scored + self.limited

    @property
    def missing(self) -> int:
        return max(0, self.expected - self.done - self.failed - self.running)

    @property
    def seconds_left(self) -> float | None:
        """The estimated seconds to the end, by the pace so far; None until an epoch has ended."""
        if not self.finished:
            return None
        return (self.running + self.missing) * self.seconds / self.finished


def add_spending(progress: Progress, scored: AttemptSummary) -> Progress:
    """Add the spending of an attempt, whatever its outcome."""
    counts = ("turns", "tool_calls", "tool_errors")
    changes = {name: getattr(progress, name) + getattr(scored, name) for name in counts}
    changes |= {"attempts": progress.attempts + 1, "spent": progress.spent + scored.usage}
    return progress.model_copy(update=changes)


def count_attempt(progress: Progress, scored: AttemptSummary, sign: int = 1) -> Progress:
    """Count an attempt as the one for its epoch; with `sign` -1, no longer count it."""
    changes: dict[str, object] = {
        scored.status: getattr(progress, scored.status) + sign,
        "stuck": progress.stuck + sign * scored.stuck,
    }
    if scored.status == "failed":
        kind = scored.failure or "infrastructure"
        changes["failures"] = _add(progress.failures, {kind: sign})
        if sign > 0:
            changes["newest_failure"] = f"{scored.code}: {scored.detail}".rstrip(": ")
    else:
        if scored.code is not None:
            changes["limits"] = _add(progress.limits, {scored.code: sign})
        added = {
            name: RunningMean(count=sign, total=sign * number, squares=sign * number**2)
            for name, number in scored.scores.items()
        }
        changes["scores"] = dict(islice(_add(progress.scores, added).items(), MAX_SCORES))
    return progress.model_copy(update=changes)


def count_attempts(progress: Progress, attempts: Iterable[AttemptResult], epochs: int) -> Progress:
    """Count the attempts at a sample, in order: all that they spent, and the newest of each epoch.

    Epochs from `epochs` on are not counted.
    """
    newest: dict[int, AttemptSummary] = {}
    for attempt in attempts:
        summary = summarize_attempt(attempt)
        progress = add_spending(progress, summary)
        if attempt.epoch < epochs:
            newest[attempt.epoch] = summary
    return reduce(count_attempt, newest.values(), progress)


def merge_progress(name: str, parts: list[Progress]) -> Progress:
    """Add up the progress of a batch's shards."""
    whole = Progress(name=name, status=_merge_statuses(parts))
    for part in parts:
        changes = {field: getattr(whole, field) + getattr(part, field) for field in SUMMED}
        for field in ("scores", "failures", "limits"):
            changes[field] = _add(getattr(whole, field), getattr(part, field))
        changes |= {
            "newest_failure": part.newest_failure or whole.newest_failure,
            "reason": whole.reason or part.reason,
            "blocked": whole.blocked or part.blocked,
            "at_work": (*whole.at_work, *part.at_work)[:MAX_NAMES_AT_WORK],
            "seconds": max(whole.seconds, part.seconds),
            "started": min(filter(None, (whole.started, part.started)), default=None),
        }
        whole = whole.model_copy(update=changes)
    return whole


def progress_markdown(progress: Progress) -> str:
    """Render the progress as markdown, for the details of its workflow."""
    counts = {name: getattr(progress, name) for name in ("scored", "limited", "failed", "running")}
    scores = {
        name: mean for name, score in progress.scores.items() if (mean := score.mean) is not None
    }
    lines = {
        "status": f"**{progress.status}**",
        "reason": progress.reason,
        "samples": f"{counts} of {progress.expected:,}",
        "scores": ", ".join(
            f"{name} {mean:.3f}" for name, mean in scores.items() if mean is not None
        ),
        "newest failure": progress.newest_failure,
        "cost": f"${progress.spent.cost:.4f}",
        "watch": f"`perdure batch watch {progress.name}`",
    }
    return "\n".join(f"- {name}: {value}" for name, value in lines.items() if value)


def summarize_attempt(attempt: AttemptResult) -> AttemptSummary:
    """Summarize an attempt for its batch's progress."""
    numbers: dict[str, float] = {}
    for scorer, score in attempt.scores.items():
        for metric, value in score.numbers.items():
            numbers[f"{scorer}/{metric}" if metric else scorer] = value
    failure = attempt.failure
    return AttemptSummary(
        status=attempt.status,
        scores=dict(list(numbers.items())[:MAX_SCORES]),
        failure=failure.kind if failure else None,
        code=failure.code if failure else attempt.limit,
        detail=failure.detail[:500] if failure else "",
        stuck=attempt.stuck,
        usage=attempt.usage + attempt.grading,
        seconds=attempt.seconds,
        turns=attempt.turns,
        tool_calls=attempt.tool_calls,
        tool_errors=attempt.tool_errors,
    )


def _add(first: dict[str, Sum], second: dict[str, Sum]) -> dict[str, Sum]:
    """Add up numbers or means by name, without those that count nothing."""
    both = {name: first[name] + second[name] for name in first if name in second}
    return {name: value for name, value in {**first, **second, **both}.items() if value}


def _merge_statuses(parts: list[Progress]) -> BatchStatus:
    order: tuple[BatchStatus, ...] = ("running", "paused", "stopped")
    statuses = {part.status for part in parts}
    return next((status for status in order if status in statuses), "finished")
