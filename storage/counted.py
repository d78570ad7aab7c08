"""What counts of a batch: the results of the samples and epochs that it has now."""

from collections.abc import AsyncIterator

from evaluation.result import SampleResult
from storage.batches import BatchFolder, Kept


async def sample_ids(folder: BatchFolder, kept: Kept) -> list[str]:
    """In the order of the dataset. Raises Altered."""
    found: list[str] = []
    for number in range(kept.chunks):
        found += [sample.id for sample in await folder.chunk(kept.samples, number)]
    return found


async def counted(folder: BatchFolder, kept: Kept) -> AsyncIterator[SampleResult]:
    """Every sample of the batch that has a result, as `BatchFolder.results` has them.

    A dataset may have been changed, or only a part of it be run again: results of samples that are
    not in it any more stay in the store, and are no part of the batch. Raises Altered.
    """
    ids = frozenset(await sample_ids(folder, kept))
    async for result in folder.results():
        if result.id not in ids:
            continue
        attempts = tuple(one for one in result.attempts if one.epoch < kept.spec.epochs)
        if attempts:
            yield result.model_copy(update={"attempts": attempts})
