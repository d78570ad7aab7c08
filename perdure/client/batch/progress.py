"""The progress of a batch, merged from its shards or counted in the store."""

from temporalio.client import WorkflowFailureError
from temporalio.exceptions import CancelledError, TerminatedError

from perdure.evaluation.progress import Progress, count_attempts, merge_progress
from perdure.storage.batches import BatchFolder, BatchRecord, list_sample_ids


def with_reason(progress: Progress, reason: str) -> Progress:
    return progress.model_copy(update={"reason": reason})


def merge_shards(whole: Progress, shards: list[Progress]) -> Progress:
    counted = merge_progress(whole.name, shards)
    own = ("status", "concurrency", "cost", "tokens", "parts")
    changes = {name: getattr(whole, name) for name in own}
    if whole.status == "running" and counted.status == "paused":
        changes["status"] = "paused"
    changes["expected"] = max(whole.expected, counted.expected)
    changes["reason"] = whole.reason or counted.reason
    return counted.model_copy(update=changes)


def describe_end(error: WorkflowFailureError) -> str:
    if isinstance(error.cause, TerminatedError):
        return "its workflow was terminated in Temporal"
    if isinstance(error.cause, CancelledError):
        return "its workflow was cancelled in Temporal"
    return f"its workflow failed: {getattr(error.cause, 'message', error.cause)}"


async def count_progress(folder: BatchFolder, record: BatchRecord) -> Progress:
    """Count the results of the batch's present samples. Raises Altered."""
    spec = record.spec
    progress = Progress(
        name=folder.name,
        expected=record.expected_attempts,
        concurrency=spec.concurrency,
        cost=spec.batch_limits.cost,
        tokens=spec.batch_limits.tokens,
    )
    ids = set(await list_sample_ids(folder, record))
    async for result in folder.read_results():
        if result.id in ids:
            progress = count_attempts(progress, result.attempts, spec.epochs)
    done = progress.missing == 0 and progress.failed == 0
    return progress.model_copy(update={"status": "finished" if done else "stopped"})
