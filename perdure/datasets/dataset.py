"""The dataset of a batch: every row is checked, few are in memory."""

import base64
import hashlib
import json
import os
import sys
import tempfile
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import starmap
from pathlib import Path
from typing import IO, Any, Self

from perdure.datasets.rows import READERS, BadDataset, Row, Rows, bad_row, read_python
from perdure.evaluation.sample import EncodedFile, InvalidSample, Sample, SourceFile, build_sample
from perdure.evaluation.seeded_random import permutation
from perdure.evaluation.spec import BatchSpec, DatasetSpec, FieldMap
from perdure.references import BadReference, import_reference

MAX_SOURCE_BYTES = 16 * 1024 * 1024
"""Bytes of a source file."""

PLAIN_FIELDS = ("id", "input", "target", "setup")

JSON_FIELDS = ("files", "metadata", "turns")
"""Fields that hold objects or lists, also as JSON text, for a CSV has only text."""


@dataclass(frozen=True)
class Dataset:
    """Samples in the order in which they are run, in a temporary file until they are read.

    Reading a sample reads its source files too, and raises BadDataset if one no longer exists.
    `spool` has a sample between each two `ends`, and `order` lists their indices.
    """

    spool: IO[bytes]
    ends: Sequence[int]
    order: Sequence[int]
    folder: Path | None

    def __len__(self) -> int:
        return len(self.order)

    def __iter__(self) -> Iterator[Sample]:
        return (self[index] for index in range(len(self)))

    def __getitem__(self, index: int) -> Sample:
        position = self.order[index]
        start, end = self.ends[position], self.ends[position + 1]
        sample = Sample.model_validate_json(os.pread(self.spool.fileno(), end - start, start))
        try:
            files = {name: _read(file, self.folder) for name, file in sample.files.items()}
        except (InvalidSample, OSError) as error:
            raise BadDataset(f"The sample {sample.id!r} cannot be made: {error}.") from error
        return sample.model_copy(update={"files": files})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.spool.close()


def read_dataset(batch: BatchSpec, rows: Iterable[Mapping[str, Any]] | None = None) -> Dataset:
    """Check every row, and spool those that the batch selects, in its order.

    `rows` are those of somebody who has no file here: they name no source files either. Memory
    grows by about 200 bytes a row, whatever its size. Raises BadDataset.
    """
    # The Dataset closes it, or the handler below.
    spool = tempfile.TemporaryFile()  # noqa: SIM115
    try:
        folder = _folder(batch.dataset) if rows is None else None
        numbered = _rows(batch.dataset) if rows is None else starmap(Row, enumerate(rows, 1))
        ends = _spool_samples(spool, batch, numbered, folder)
        return Dataset(spool, ends, _order(batch, len(ends) - 1), folder)
    except BaseException:
        spool.close()
        raise


def _spool_samples(
    spool: IO[bytes], batch: BatchSpec, rows: Rows, folder: Path | None
) -> Sequence[int]:
    """Write the selected samples; return the offset where each begins, and the last one ends."""
    ends, missing = array("Q", [0]), set(batch.ids)
    for sample in _samples(batch.dataset, rows, folder):
        if not batch.ids or sample.id in missing:
            missing.discard(sample.id)
            ends.append(ends[-1] + spool.write(sample.model_dump_json().encode()))
    spool.flush()
    if missing:
        raise BadDataset(f"{_source(batch.dataset)} has no sample {min(missing)!r}.")
    if len(ends) == 1:
        raise BadDataset(f"{_source(batch.dataset)} has no samples.")
    return ends


def _order(batch: BatchSpec, count: int) -> Sequence[int]:
    """Shuffle before cutting, so that a part of a dataset is like the whole."""
    order = permutation(f"shuffle:{batch.seed}", count) if batch.shuffle else range(count)
    return order[: batch.limit]


def _samples(dataset: DatasetSpec, rows: Rows, folder: Path | None) -> Iterator[Sample]:
    unique_ids = _UniqueIds()
    for line, row in rows:
        try:
            fields = map_fields(row, dataset.fields)
            is_explicit = fields.get("id") is not None
            sample = unique_ids.make_unique(build_sample(fields), line, is_explicit)
            for file in sample.files.values():
                if isinstance(file, SourceFile):
                    _resolve(file, folder)
        except InvalidSample as error:
            raise bad_row(_source(dataset), line, error) from error
        yield sample


class _UniqueIds:
    """The ids so far, as hashes: ids may be long, and there may be many."""

    def __init__(self) -> None:
        self._lines: dict[bytes, int] = {}
        self._copies: Counter[str] = Counter()

    def make_unique(self, sample: Sample, line: int, is_explicit: bool) -> Sample:
        """Number an id that is taken unless it is explicit. Raises InvalidSample."""
        while (first := self._lines.setdefault(_hash(sample.id), line)) != line:
            if is_explicit:
                raise InvalidSample(f"the id {sample.id!r} is that of line {first} too")
            self._copies[sample.id] += 1
            copy = f"{sample.id}-{self._copies[sample.id] + 1}"
            sample = sample.model_copy(update={"id": copy})
        return sample


def _hash(name: str) -> bytes:
    return hashlib.blake2b(name.encode(), digest_size=16).digest()


def map_fields(row: Mapping[str, Any], fields: FieldMap) -> dict[str, Any]:
    """Return the fields of a sample. Raises InvalidSample if a column is missing."""
    values: dict[str, Any] = {}
    for field in (*PLAIN_FIELDS, *JSON_FIELDS):
        column = getattr(fields, field)
        if isinstance(column, tuple):
            values[field] = {part: _cell(row, field, part) for part in column}
        elif column in row or field in fields.model_fields_set or field == "input":
            values[field] = _cell(row, field, column)
    parsed = {field: _parse_json(field, values[field]) for field in JSON_FIELDS if field in values}
    return values | {name: value for name, value in parsed.items() if value is not None}


def _cell(row: Mapping[str, Any], field: str, column: str) -> Any:
    if column not in row:
        columns = ", ".join(map(repr, row)) or "none"
        raise InvalidSample(f"there is no column {column!r} for {field}; the row has {columns}")
    return row[column]


def _parse_json(field: str, value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError) as error:
        raise InvalidSample(f"{field} is no JSON: {error}") from error


def _rows(dataset: DatasetSpec) -> Rows:
    if dataset.path is None or dataset.file_format is None:
        yield from read_python(_source(dataset), dataset.arguments)
        return
    try:
        yield from READERS[dataset.file_format](Path(dataset.path))
    except OSError as error:
        reason = error.strerror or str(error)
        raise BadDataset(f"The dataset {dataset.path} cannot be read ({reason}).") from error


def _source(dataset: DatasetSpec) -> str:
    return dataset.path or dataset.function or ""


def _folder(dataset: DatasetSpec) -> Path:
    """Return the folder of the files that samples name: the dataset's own."""
    if dataset.path is not None:
        return Path(dataset.path).parent
    try:
        import_reference(_source(dataset))
    except BadReference as error:
        raise BadDataset(f"{_source(dataset)!r}: {error}.") from error
    file = sys.modules[_source(dataset).partition(":")[0]].__file__
    return Path(file).parent if file else Path.cwd()


def _read(file: str | EncodedFile | SourceFile, folder: Path | None) -> str | EncodedFile:
    if not isinstance(file, SourceFile):
        return file
    content = _resolve(file, folder).read_bytes()
    try:
        return content.decode()
    except UnicodeDecodeError:
        return EncodedFile(base64=base64.b64encode(content).decode())


def _resolve(file: SourceFile, folder: Path | None) -> Path:
    """Refuse paths outside the folder: a dataset may come from anywhere."""
    if folder is None:
        raise InvalidSample(f"{file.source!r} is not here: write the file's text in its place")
    try:
        path = (folder / file.source).resolve()
        is_inside = path.is_relative_to(folder.resolve())
        size = path.stat().st_size if path.is_file() else None
    except (OSError, ValueError) as error:
        raise InvalidSample(f"{file.source!r}: {error}") from error
    if not is_inside:
        raise InvalidSample(f"{file.source!r} leads out of the dataset's folder")
    if size is None:
        raise InvalidSample(f"there is no file {file.source!r} beside the dataset")
    if size > MAX_SOURCE_BYTES:
        most = f"{MAX_SOURCE_BYTES:,} is the most"
        raise InvalidSample(f"{file.source!r} has {size:,} bytes, and {most}")
    return path
