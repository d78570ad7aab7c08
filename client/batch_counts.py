"""How far a batch is by its results alone, with no workflow to ask."""

from client.batch_samples import hashed, ids
from evaluation.progress import Progress, counted, scored_of, spent_by
from evaluation.result import SampleResult
from storage.batches import BatchFolder, Kept


async def counts(folder: BatchFolder, kept: Kept) -> Progress:
    """Of the samples that the batch has now; whatever has no result is missing. Raises Altered."""
    spec = kept.spec
    progress = Progress(
        name=folder.name,
        expected=kept.expected,
        concurrency=spec.concurrency,
        cost=spec.batch_limits.cost,
        tokens=spec.batch_limits.tokens,
    )
    names = await ids(folder, kept)
    async for result in folder.results():
        if hashed(result.id) in names:
            progress = _with(progress, result, spec.epochs)
    done = progress.missing == 0 and progress.failed == 0
    return progress.model_copy(update={"status": "finished" if done else "stopped"})


def _with(progress: Progress, result: SampleResult, epochs: int) -> Progress:
    for attempt in result.attempts:
        progress = spent_by(progress, scored_of(attempt))
    for attempt in result.final:
        if attempt.epoch < epochs:
            progress = counted(progress, scored_of(attempt))
    return progress
