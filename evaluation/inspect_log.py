"""A batch in the terms of an Inspect log: what it was, what came of each sample and of all."""

from collections.abc import Sequence
from typing import Any

from agent.spec import Limits
from evaluation.result import OVERFLOW, Attempt, Failure, SampleResult
from evaluation.spec import BatchSpec, agent_of
from evaluation.summary import Estimate, Measure, Summary
from events.usage import Usage
from exports.inspect_batch import Told
from exports.inspect_sample import Trial

LIMITS = {
    "max_iterations": "message",
    "max_tokens": "token",
    "max_budget": "cost",
    "deadline": "time",
    OVERFLOW: "context",
}
"""Our limits in their terms; any other is a custom one."""

REDUCERS = {"best": "max"}


def trial_of(result: SampleResult, attempt: Attempt, spec: BatchSpec) -> Trial:
    """The attempt as a sample; others at the same epoch that failed before it are its retries."""
    target = result.target
    before = (one for one in result.attempts if one.epoch == attempt.epoch)
    retries = [one.failure for one in before if one.number < attempt.number and one.failure]
    return Trial(
        id=result.id,
        epoch=attempt.epoch + 1,
        target=target[0] if len(target) == 1 else list(target) or "",
        metadata=result.metadata,
        scores={name: one.model_dump(mode="json") for name, one in attempt.scores.items()},
        error=_error(attempt.failure) if attempt.failure else None,
        retries=tuple(map(_error, retries)),
        limit=_limit(attempt.limit, spec) if attempt.limit else None,
        spent=_spent(attempt.usage),
        grading=_spent(attempt.grading),
        seconds=attempt.seconds,
        turns=attempt.turns,
    )


def told_of(spec: BatchSpec, summary: Summary, ids: Sequence[str], version: str) -> Told:
    """`ids` are those of all samples, whether they have a result or not."""
    counts = summary.counts
    open_ones = counts.running + counts.missing
    return Told(
        status="started" if open_ones else "success",
        spec=_spec(spec, ids, version),
        results={
            "total_samples": counts.expected,
            "completed_samples": counts.done,
            "scores": [
                _score(measure, reducer, estimate, len(ids))
                for measure in summary.measures
                for reducer, estimate in measure.estimates.items()
            ],
        },
    )


def _error(failure: Failure) -> str:
    said = f"{failure.kind}: {failure.code}"
    return f"{said}: {failure.detail}" if failure.detail else said


def _limit(code: str, spec: BatchSpec) -> dict[str, Any]:
    limits: Limits = agent_of(spec).limits
    values = {**limits.model_dump(), "deadline": spec.limits.time}
    return {"type": LIMITS.get(code, "custom"), "limit": values.get(code) or 0, "reason": code}


def _spent(usage: Usage) -> Usage | None:
    """None where nothing was."""
    return usage if usage.prompt_tokens or usage.completion_tokens or usage.cost else None


def _spec(spec: BatchSpec, ids: Sequence[str], version: str) -> dict[str, Any]:
    limits = agent_of(spec).limits
    config = {
        "epochs": spec.epochs,
        "epochs_reducer": [_reducer(one) for one in spec.reducers],
        "fail_on_error": False,
        "retry_on_error": spec.retries.times,
        "message_limit": limits.max_iterations,
        "token_limit": limits.max_tokens,
        "cost_limit": limits.max_budget,
        "max_samples": spec.concurrency,
    }
    return {
        "eval_id": spec.name,
        "run_id": spec.name,
        "task": spec.name,
        "task_id": spec.name,
        "dataset": {
            "name": spec.dataset.path or spec.dataset.function,
            "samples": len(ids),
            "sample_ids": list(ids),
            "shuffled": spec.shuffle,
        },
        "model": spec.agent.model.name,
        "scorers": [{"name": one.called} for one in spec.scorers],
        "config": {name: value for name, value in config.items() if value is not None},
        "packages": {"perdure": version},
    }


def _reducer(name: str) -> str:
    return REDUCERS.get(name, name.replace("pass@", "pass_at_"))


def _score(measure: Measure, reducer: str, estimate: Estimate, samples: int) -> dict[str, Any]:
    """An accuracy where every sample has 0 or 1, else a mean."""
    mean = "accuracy" if estimate.wilson else "mean"
    intervals = {"interval": estimate.interval, "wilson": estimate.wilson}
    told = {name: list(ends) for name, ends in intervals.items() if ends is not None}
    metrics = {mean: {"name": mean, "value": estimate.mean, "metadata": told}}
    if estimate.standard_error is not None:
        metrics["stderr"] = {"name": "stderr", "value": estimate.standard_error}
    return {
        "name": measure.metric or measure.scorer,
        "scorer": measure.scorer,
        "reducer": _reducer(reducer),
        "scored_samples": estimate.samples,
        "unscored_samples": max(0, samples - estimate.samples),
        "metrics": metrics,
    }
