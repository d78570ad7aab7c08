"""Comparison of a batch's samples with those of its earlier runs."""

import hashlib
from collections.abc import Iterable, Iterator

from perdure.errors import Conflict
from perdure.evaluation.sample import Sample
from perdure.storage.batches import BatchFolder, BatchRecord
from perdure.storage.keys import batch_prefix
from perdure.storage.store import list_folders, list_keys

SCORING_FIELDS = {"target", "metadata"}
"""The fields that the agent does not see: they may change if samples are scored again."""

RESCORED_OPTION = "rescored"
"""The option of a batch that names the sample sets whose targets have been replaced."""


class UnchangedSamples:
    """An iterable of samples that raises Conflict at one that has changed since earlier runs."""

    def __init__(self, name: str, samples: Iterable[Sample], earlier: "SampleHashes") -> None:
        self._name = name
        self._samples = samples
        self._earlier = earlier

    def __iter__(self) -> Iterator[Sample]:
        for sample in self._samples:
            self._earlier.require_unchanged(self._name, sample)
            yield sample


class SampleHashes:
    """Hashes of all samples of earlier runs: about 200 bytes a sample.

    With `rescore`, targets and metadata may have changed.
    """

    def __init__(self, *, rescore: bool = False) -> None:
        self._rescore = rescore
        self._input_hashes: dict[int, int] = {}
        self._scoring_hashes: dict[int, int] = {}

    def add(self, sample: Sample, *, with_scoring: bool) -> None:
        """Add a sample; `with_scoring` includes its target and its metadata."""
        self._input_hashes[hash_text(sample.id)] = _hash_input(sample)
        if with_scoring and not self._rescore:
            self._scoring_hashes[hash_text(sample.id)] = _hash_scoring(sample)

    def require_unchanged(self, batch: str, sample: Sample) -> None:
        """Raise Conflict if the sample was in an earlier run, and has changed since."""
        name, hint = hash_text(sample.id), "Give the batch another name."
        input_hash, scoring_hash = self._input_hashes.get(name), self._scoring_hashes.get(name)
        if input_hash is not None and input_hash != _hash_input(sample):
            part = "it asks for something else, or has other files"
        elif scoring_hash is not None and scoring_hash != _hash_scoring(sample):
            part = "its target or its metadata are others"
            hint = (
                f"`perdure batch rescore {batch} FILE` scores what there is by the new ones; or "
                "give the batch another name."
            )
        else:
            return
        raise Conflict(
            f"The sample {sample.id!r} is not what it was in an earlier run of {batch}: {part}.",
            hint,
        )


async def load_sample_hashes(
    folder: BatchFolder, record: BatchRecord, *, rescore: bool = False
) -> SampleHashes:
    """Load the hashes of every sample that the batch has ever had. Raises Altered."""
    hashes = SampleHashes(rescore=rescore)
    replaced = record.options.get(RESCORED_OPTION)
    for name in await list_sample_sets(folder):
        with_scoring = not (isinstance(replaced, list) and name in replaced)
        chunks = record.chunks if name == record.samples else await _count_chunks(folder, name)
        for chunk in range(chunks):
            for sample in await folder.read_chunk(name, chunk):
                hashes.add(sample, with_scoring=with_scoring)
    return hashes


def hash_text(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())


async def samples_match(
    folder: BatchFolder, record: BatchRecord, samples: Iterable[Sample]
) -> bool:
    """Tell whether the samples are the batch's present ones, in order. Raises Altered."""
    others = iter(samples)
    for chunk in range(record.chunks):
        for sample in await folder.read_chunk(record.samples, chunk):
            if next(others, None) != sample:
                return False
    return next(others, None) is None


async def list_sample_sets(folder: BatchFolder) -> list[str]:
    """List the names of a batch's sample sets in the store."""
    return await list_folders(folder.store, _prefix(folder))


async def _count_chunks(folder: BatchFolder, name: str) -> int:
    """Count the chunks of a set without a gap, as the last ones may not be written yet."""
    prefix, count = f"{_prefix(folder)}{name}/", 0
    async for key in list_keys(folder.store, prefix):
        if int(key[len(prefix) :].removesuffix(".jsonl")) != count:
            break
        count += 1
    return count


def _prefix(folder: BatchFolder) -> str:
    return f"{batch_prefix(folder.user_id, folder.name)}samples/"


def _hash_input(sample: Sample) -> int:
    return hash_text(sample.model_dump_json(exclude=SCORING_FIELDS))


def _hash_scoring(sample: Sample) -> int:
    return hash_text(sample.model_dump_json(include=SCORING_FIELDS))
