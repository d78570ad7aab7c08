"""A batch in the terms of an Inspect log: its spec, its samples and their scores."""

from collections.abc import Sequence

from perdure.agent.policies import Limits
from perdure.evaluation.result import OVERFLOW_CODE, AttemptFailure, AttemptResult, SampleResult
from perdure.evaluation.spec import BatchSpec, agent_with_limits
from perdure.evaluation.summary import Estimate, Measure, Summary
from perdure.events.usage import Usage
from perdure.exports.inspect_sample import SampleMetadata
from perdure.exports.json_text import Json

LIMIT_TYPES = {
    "max_iterations": "message",
    "max_tokens": "token",
    "max_budget": "cost",
    "deadline": "time",
    OVERFLOW_CODE: "context",
}
"""Inspect's types for our limits; any other is a custom one."""

REDUCERS = {"best": "max"}


def sample_metadata(
    result: SampleResult, attempt: AttemptResult, spec: BatchSpec
) -> SampleMetadata:
    """Describe an attempt as a sample; earlier failed attempts of its epoch are its retries."""
    target = result.target
    same_epoch = (item for item in result.attempts if item.epoch == attempt.epoch)
    retries = [item.failure for item in same_epoch if item.number < attempt.number and item.failure]
    return SampleMetadata(
        id=result.id,
        epoch=attempt.epoch + 1,
        target=target[0] if len(target) == 1 else list(target) or "",
        metadata=result.metadata,
        scores={name: item.model_dump(mode="json") for name, item in attempt.scores.items()},
        error=_error(attempt.failure) if attempt.failure else None,
        retries=tuple(map(_error, retries)),
        limit=_limit(attempt.limit, spec) if attempt.limit else None,
        spent=_usage_or_none(attempt.usage),
        grading=_usage_or_none(attempt.grading),
        seconds=attempt.seconds,
        turns=attempt.turns,
    )


def batch_header(spec: BatchSpec, summary: Summary, ids: Sequence[str], version: str) -> Json:
    """Build the header; `ids` are those of all samples, also without a result."""
    counts = summary.counts
    unfinished = counts.running + counts.missing
    return {
        "status": "started" if unfinished else "success",
        "eval": _spec(spec, ids, version),
        "results": {
            "total_samples": counts.expected,
            "completed_samples": counts.done,
            "scores": [
                _score(measure, reducer, estimate, len(ids))
                for measure in summary.measures
                for reducer, estimate in measure.estimates.items()
            ],
        },
    }


def _error(failure: AttemptFailure) -> str:
    text = f"{failure.kind}: {failure.code}"
    return f"{text}: {failure.detail}" if failure.detail else text


def _limit(code: str, spec: BatchSpec) -> Json:
    limits: Limits = agent_with_limits(spec).limits
    values = {**limits.model_dump(), "deadline": spec.limits.time}
    return {"type": LIMIT_TYPES.get(code, "custom"), "limit": values.get(code) or 0, "reason": code}


def _usage_or_none(usage: Usage) -> Usage | None:
    return usage if usage.prompt_tokens or usage.completion_tokens or usage.cost else None


def _spec(spec: BatchSpec, ids: Sequence[str], version: str) -> Json:
    limits = agent_with_limits(spec).limits
    config = {
        "epochs": spec.epochs,
        "epochs_reducer": [_reducer(item) for item in spec.reducers],
        "fail_on_error": False,
        "retry_on_error": spec.retries.times,
        "message_limit": limits.max_iterations,
        "token_limit": limits.max_tokens,
        "cost_limit": limits.max_budget,
        "max_samples": spec.concurrency,
    }
    return {
        **dict.fromkeys(("eval_id", "run_id", "task", "task_id"), spec.name),
        "dataset": {
            "name": spec.dataset.path or spec.dataset.function,
            "samples": len(ids),
            "sample_ids": list(ids),
            "shuffled": spec.shuffle,
        },
        "model": spec.agent.model.name,
        "scorers": [{"name": item.score_name} for item in spec.scorers],
        "config": {name: value for name, value in config.items() if value is not None},
        "packages": {"perdure": version},
    }


def _reducer(name: str) -> str:
    return REDUCERS.get(name, name.replace("pass@", "pass_at_"))


def _score(measure: Measure, reducer: str, estimate: Estimate, samples: int) -> Json:
    """Report an accuracy if every sample has 0 or 1, else a mean."""
    mean = "accuracy" if estimate.wilson else "mean"
    intervals = {"interval": estimate.interval, "wilson": estimate.wilson}
    interval_fields = {name: list(ends) for name, ends in intervals.items() if ends is not None}
    metrics = {mean: {"name": mean, "value": estimate.mean, "metadata": interval_fields}}
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
