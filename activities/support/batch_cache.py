"""A cache of batch folders, and loading of batches and samples from them."""

import asyncio
from collections import OrderedDict

from temporalio.exceptions import ApplicationError

from perdure.agent.loop.attempt import Attempt
from perdure.evaluation.sample import Sample
from perdure.evaluation.spec import BatchSpec
from perdure.storage.batches import BatchFolder, BatchRecord
from perdure.storage.store import Store

MAX_CACHED_BATCHES = 16
"""Batches in the cache at a time."""


class BatchCache:
    """The most recently used batch folders, which keep their samples in memory."""

    def __init__(self) -> None:
        self._folders: OrderedDict[tuple[str, str], BatchFolder] = OrderedDict()

    def folder(self, store: Store, user_id: str, name: str) -> BatchFolder:
        """Return a batch's folder. Raises ApplicationError if its name is invalid."""
        key = (user_id, name)
        if key not in self._folders:
            try:
                self._folders[key] = BatchFolder(store, user_id, name)
            except ValueError as error:
                raise ApplicationError(str(error), type="BadId", non_retryable=True) from error
            while len(self._folders) > MAX_CACHED_BATCHES:
                self._folders.popitem(last=False)
        self._folders.move_to_end(key)
        return self._folders[key]


async def load_batch_and_sample(folder: BatchFolder, attempt: Attempt) -> tuple[BatchSpec, Sample]:
    """Load the batch as it is now, and the sample of an attempt. Raises Altered."""
    record, sample = await asyncio.gather(
        load_batch(folder), folder.read_sample(attempt.sample_set, attempt.chunk, attempt.line)
    )
    return record.spec, sample


async def load_batch(folder: BatchFolder) -> BatchRecord:
    record = await folder.load()
    if record is None:
        raise ApplicationError(
            f"There is no batch {folder.name!r} in the store of this worker: start it with "
            "`perdure batch run`, with the same store and user as the worker.",
            type="BatchNotFound",
            non_retryable=True,
        )
    return record
