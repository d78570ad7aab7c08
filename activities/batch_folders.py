"""The batches of this worker: what they are, as far as a step has to know."""

import asyncio
from collections import OrderedDict

from temporalio.exceptions import ApplicationError

from agent.trial import Trial
from evaluation.sample import Sample
from evaluation.spec import BatchSpec
from storage.batches import BatchFolder, Kept
from storage.store import Store

MANY = 16
"""Batches that are known at a time."""


class Batches:
    """Folders of batches in a store; those used last keep their samples in memory."""

    def __init__(self) -> None:
        self._folders: OrderedDict[tuple[str, str], BatchFolder] = OrderedDict()

    def folder(self, store: Store, user_id: str, name: str) -> BatchFolder:
        """Raises ApplicationError where there can be no such batch: no retry makes one."""
        place = (user_id, name)
        if place not in self._folders:
            try:
                self._folders[place] = BatchFolder(store, user_id, name)
            except ValueError as error:
                raise ApplicationError(str(error), type="BadId", non_retryable=True) from error
            while len(self._folders) > MANY:
                self._folders.popitem(last=False)
        self._folders.move_to_end(place)
        return self._folders[place]


async def told(folder: BatchFolder, trial: Trial) -> tuple[BatchSpec, Sample]:
    """The batch as it is now, and the sample that the trial is about. Raises Altered."""
    kept, sample = await asyncio.gather(
        kept_of(folder), folder.sample(trial.samples, trial.chunk, trial.line)
    )
    return kept.spec, sample


async def kept_of(folder: BatchFolder) -> Kept:
    kept = await folder.kept()
    if kept is None:
        raise ApplicationError(
            f"There is no batch {folder.name!r} in the store of this worker: start it with "
            "`perdure batch run`, with the same store and user as the worker.",
            type="BatchNotFound",
            non_retryable=True,
        )
    return kept
