"""The samples of a batch: all of them looked at, few of them in memory."""

import os
import sys
import tempfile
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from evaluation.dice import permutation
from evaluation.sample import Misfit, Sample, sample_of
from evaluation.spec import BatchSpec, DatasetSpec, Format
from storage.datasets import csv, function, jsonl, parquet
from storage.datasets.fields import mapped
from storage.datasets.names import Names
from storage.datasets.references import found
from storage.datasets.rows import BadDataset, Rows, bad_row
from storage.datasets.sources import check, with_sources

READERS: dict[Format, Callable[[Path], Rows]] = {
    "jsonl": jsonl.rows,
    "csv": csv.rows,
    "parquet": parquet.rows,
}


class Dataset:
    """Samples in the order in which they are run, in a file until they are asked for.

    What is asked for has its files read; that raises BadDataset where one is gone by then.
    """

    def __init__(
        self, kept: IO[bytes], ends: Sequence[int], order: Sequence[int], folder: Path
    ) -> None:
        """`kept` holds a sample from each of the `ends` to the next, `order` says which."""
        self._kept = kept
        self._ends = ends
        self._order = order
        self._folder = folder

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[Sample]:
        return (self[index] for index in range(len(self)))

    def __getitem__(self, index: int) -> Sample:
        at = self._order[index]
        start, end = self._ends[at], self._ends[at + 1]
        sample = Sample.model_validate_json(os.pread(self._kept.fileno(), end - start, start))
        try:
            return with_sources(sample, self._folder)
        except (Misfit, OSError) as error:
            raise BadDataset(f"The sample {sample.id!r} cannot be made: {error}.") from error

    def close(self) -> None:
        self._kept.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def read_dataset(batch: BatchSpec) -> Dataset:
    """Look at every row, and keep those that the batch selects, in its order.

    Memory grows by about 200 bytes a row, whatever its size. Raises BadDataset.
    """
    # Closed by the Dataset, or here.
    kept = tempfile.TemporaryFile()  # noqa: SIM115
    try:
        folder = _folder(batch.dataset)
        ends = _keep(kept, batch, folder)
        return Dataset(kept, ends, _order(batch, len(ends) - 1), folder)
    except BaseException:
        kept.close()
        raise


def _keep(kept: IO[bytes], batch: BatchSpec, folder: Path) -> Sequence[int]:
    """Write every sample that is selected; gives where each begins, and where the last one ends."""
    ends, names, missing = array("Q", [0]), Names(), set(batch.ids)
    for sample in _samples(batch.dataset, names, folder):
        if not batch.ids or sample.id in missing:
            missing.discard(sample.id)
            ends.append(ends[-1] + kept.write(sample.model_dump_json().encode()))
    kept.flush()
    if missing:
        raise BadDataset(f"{_source(batch.dataset)} has no sample {min(missing)!r}.")
    if len(ends) == 1:
        raise BadDataset(f"{_source(batch.dataset)} has no samples.")
    return ends


def _order(batch: BatchSpec, count: int) -> Sequence[int]:
    """Shuffled before it is cut, so that a part of a dataset is like the whole."""
    order = permutation(f"shuffle:{batch.seed}", count) if batch.shuffle else range(count)
    return order[: batch.limit]


def _samples(dataset: DatasetSpec, names: Names, folder: Path) -> Iterator[Sample]:
    source = _source(dataset)
    for line, row in _rows(dataset):
        try:
            fields = mapped(row, dataset.fields)
            sample = names.given(sample_of(fields), line, named=fields.get("id") is not None)
            check(sample, folder)
        except Misfit as error:
            raise bad_row(source, line, error) from error
        yield sample


def _rows(dataset: DatasetSpec) -> Rows:
    if dataset.path is None:
        assert dataset.function is not None, "a dataset is a file or a function"
        yield from function.rows(dataset.function)
        return
    assert dataset.kind is not None, "a file has a format"
    try:
        yield from READERS[dataset.kind](Path(dataset.path))
    except OSError as error:
        reason = error.strerror or str(error)
        raise BadDataset(f"The dataset {dataset.path} cannot be read ({reason}).") from error


def _source(dataset: DatasetSpec) -> str:
    return dataset.path or dataset.function or ""


def _folder(dataset: DatasetSpec) -> Path:
    """Where files are that the samples name: beside the dataset."""
    if dataset.path is not None:
        return Path(dataset.path).parent
    found(_source(dataset))
    file = sys.modules[_source(dataset).partition(":")[0]].__file__
    return Path(file).parent if file else Path.cwd()
