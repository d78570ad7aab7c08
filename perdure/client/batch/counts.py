"""The progress of a batch, counted from its results in the store."""

from perdure.evaluation.progress import Progress, add_spending, count_attempt, summarize_attempt
from perdure.evaluation.result import SampleResult
from perdure.storage.batches import BatchFolder, BatchRecord, list_sample_ids


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
            progress = _add_result(progress, result, spec.epochs)
    done = progress.missing == 0 and progress.failed == 0
    return progress.model_copy(update={"status": "finished" if done else "stopped"})


def _add_result(progress: Progress, result: SampleResult, epochs: int) -> Progress:
    for attempt in result.attempts:
        progress = add_spending(progress, summarize_attempt(attempt))
    for attempt in result.final_attempts:
        if attempt.epoch < epochs:
            progress = count_attempt(progress, summarize_attempt(attempt))
    return progress
