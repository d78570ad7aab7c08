"""Storage of batches: the spec, the samples, and the result of every attempt at them.

An attempt's result is written once, under a key of its own. Nobody reads, changes and writes what
others write too, so no result is lost to a killed or a late writer.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any

from pydantic import BaseModel, Field, JsonValue, ValidationError

from perdure.evaluation.result import AttemptResult, SampleResult
from perdure.evaluation.sample import Sample
from perdure.evaluation.spec import BatchSpec
from perdure.events.base import Tolerant
from perdure.storage import keys
from perdure.storage.cache import Cache
from perdure.storage.errors import Altered
from perdure.storage.log.reader import LogReader
from perdure.storage.readable_batch import ReadableBatch
from perdure.storage.store import Store, list_folders, list_keys

MAX_CHUNK_SAMPLES = 100
MAX_CHUNK_BYTES = 1024 * 1024  # unless a single sample is larger
PARALLEL_REQUESTS = 32
MAX_CACHED_CHUNKS = 8


class BatchRecord(Tolerant):
    """The current record of a batch; `samples` names a set of `count` samples in `chunks` objects.

    `options` are the other options of its last run: for people, not for programs.
    """

    spec: BatchSpec
    samples: str
    count: int
    chunks: int
    version: str = "0"
    options: dict[str, JsonValue] = Field(default_factory=dict)

    @property
    def expected_attempts(self) -> int:
        """Number of results when the batch is complete: samples times epochs."""
        return self.count * self.spec.epochs


class BatchFolder:
    """The part of a store of one batch. Raises ValueError for an invalid user id or batch name."""

    def __init__(self, store: Store, user_id: str, name: str) -> None:
        self.store = store
        self.user_id = user_id
        self.name = name
        self._prefix = keys.batch_prefix(user_id, name)
        self._chunks: Cache[tuple[str, int], list[bytes]] = Cache(MAX_CACHED_CHUNKS)

    async def load(self) -> BatchRecord | None:
        """Load the record; None if there is no such batch. Raises Altered and StoreUnavailable."""
        body = await self.store.read(self._prefix + keys.BATCH)
        return None if body is None else self._parse(BatchRecord, keys.BATCH, body)

    async def save(self, record: BatchRecord) -> None:
        await self.store.replace(self._prefix + keys.BATCH, _to_json(record))

    async def write_samples(self, samples: Iterable[Sample]) -> tuple[str, int, int]:
        """Write the samples; return the name of the set, the number of samples, and of objects.

        Equal samples make the same set. They are iterated twice: first for the name.
        """
        digest, count, chunks = hashlib.sha256(), 0, 0
        for lines in _chunk_lines(samples):
            digest.update(b"".join(lines))
            count, chunks = count + len(lines), chunks + 1
        name = digest.hexdigest()[:16]
        writes: set[asyncio.Task[bool]] = set()
        for chunk, lines in enumerate(_chunk_lines(samples)):
            key = self._prefix + keys.chunk_key(name, chunk)
            writes.add(asyncio.ensure_future(self.store.create(key, b"".join(lines))))
            if len(writes) == PARALLEL_REQUESTS:
                done, writes = await asyncio.wait(writes, return_when="FIRST_COMPLETED")
                for write in done:
                    write.result()
        await asyncio.gather(*writes)
        return name, count, chunks

    async def read_chunk(self, samples: str, number: int) -> list[Sample]:
        """Read the samples of one object. Raises Altered."""
        lines = await self._read_lines(samples, number)
        return [self._parse(Sample, keys.chunk_key(samples, number), line) for line in lines]

    async def read_sample(self, samples: str, chunk: int, line: int) -> Sample:
        """Read one sample. Raises Altered."""
        lines = await self._read_lines(samples, chunk)
        if line >= len(lines):
            raise Altered(self._prefix + keys.chunk_key(samples, chunk))
        sample: Sample = self._parse(Sample, keys.chunk_key(samples, chunk), lines[line])
        return sample

    def open_log(self, conversation_id: str) -> LogReader:
        """Open the log of the conversation of an attempt."""
        return LogReader(self.store, self.user_id, conversation_id)

    async def list_attempts(self, sample: str) -> list[tuple[int, int]]:
        """List epoch and number of every attempt at a sample that has a result, in order."""
        prefix = self._prefix + keys.result_folder(sample)
        names = (key.removeprefix(prefix) for key in await self.store.list(prefix))
        return sorted(filter(None, map(_parse_attempt_name, names)))

    async def read_result(self, sample: str, epoch: int, number: int) -> SampleResult | None:
        """Read the sample with this one attempt; None if it has no result. Raises Altered."""
        key = keys.attempt_key(sample, epoch, number)
        body = await self.store.read(self._prefix + key)
        return None if body is None else self._parse(SampleResult, key, body)

    async def record_attempt(self, sample: Sample, attempt: AttemptResult) -> AttemptResult:
        """Write the attempt's result, once; return the one on record."""
        key = keys.attempt_key(sample.id, attempt.epoch, attempt.number)
        if await self.store.create(self._prefix + key, _to_json(_result_of(sample, attempt))):
            return attempt
        stored = await self.read_result(sample.id, attempt.epoch, attempt.number)
        if stored is None or not stored.attempts:
            raise Altered(self._prefix + key)
        return stored.attempts[0]

    async def replace_attempt(self, sample: Sample, attempt: AttemptResult) -> None:
        """Overwrite an attempt whose scores were computed again."""
        key = keys.attempt_key(sample.id, attempt.epoch, attempt.number)
        await self.store.replace(self._prefix + key, _to_json(_result_of(sample, attempt)))

    async def read_grading(self, sample: str, epoch: int, number: int, scorer: str) -> bytes | None:
        """Read the recorded reply of a grading model, if there is one."""
        return await self.store.read(self._prefix + keys.grading_key(sample, epoch, number, scorer))

    async def record_grading(
        self, sample: str, epoch: int, number: int, scorer: str, body: bytes
    ) -> bytes:
        """Record a grading model's reply before it is used; return the one on record."""
        key = self._prefix + keys.grading_key(sample, epoch, number, scorer)
        if await self.store.create(key, body):
            return body
        return await self.store.read(key) or body

    async def is_fresh(self) -> bool:
        """Check that nothing has a result yet."""
        return not await self.store.list(self._prefix + keys.RESULTS, limit=1)

    async def read_results(self) -> AsyncIterator[SampleResult]:
        """Yield every sample that has a result, once with all attempts, in the order of their keys.

        Few of them are in memory at a time. Raises Altered.
        """
        prefix = self._prefix + keys.RESULTS
        group: list[str] = []
        async for key in list_keys(self.store, prefix):  # those of one sample in a row
            folder, _, name = key.removeprefix(prefix).rpartition("/")
            if "/" in folder or not _parse_attempt_name(name):
                continue
            if len(group) >= PARALLEL_REQUESTS and not group[-1].startswith(f"{prefix}{folder}/"):
                for result in await self._merge_results(group):
                    yield result
                group = []
            group.append(key)
        for result in await self._merge_results(group):
            yield result

    async def _merge_results(self, attempt_keys: Sequence[str]) -> list[SampleResult]:
        """Read these attempts; merge those of the same sample."""
        results: dict[str, SampleResult] = {}
        bodies = await asyncio.gather(*map(self.store.read, attempt_keys))
        for key, body in zip(attempt_keys, bodies, strict=True):
            if body is not None:
                result = self._parse(SampleResult, key.removeprefix(self._prefix), body)
                if earlier := results.get(result.id):
                    attempts = (*earlier.attempts, *result.attempts)
                    attempts = tuple(sorted(attempts, key=attrgetter("epoch", "number")))
                    result = result.model_copy(update={"attempts": attempts})
                results[result.id] = result
        return list(results.values())

    async def _read_lines(self, samples: str, number: int) -> list[bytes]:
        """Read an object of samples; the last ones used stay in memory."""
        lines = self._chunks.get((samples, number))
        if lines is None:
            key = self._prefix + keys.chunk_key(samples, number)
            body = await self.store.read(key)
            if body is None:
                raise Altered(key)
            lines = body.splitlines()
            self._chunks.put((samples, number), lines)
        return lines

    def _parse(self, kind: Any, key: str, body: bytes) -> Any:
        try:
            return kind.model_validate_json(body)
        except ValidationError as error:
            raise Altered(self._prefix + key) from error


async def list_batches(store: Store, user_id: str) -> list[str]:
    """List the names of a user's batches, in order."""
    return await list_folders(store, keys.batches_prefix(user_id))


def _result_of(sample: Sample, attempt: AttemptResult) -> SampleResult:
    return SampleResult(
        id=sample.id, target=sample.target, metadata=sample.metadata, attempts=(attempt,)
    )


def _chunk_lines(samples: Iterable[Sample]) -> Iterator[list[bytes]]:
    """Yield the lines of each object of samples."""
    lines: list[bytes] = []
    for line in (_to_json(sample) + b"\n" for sample in samples):
        is_full = len(lines) == MAX_CHUNK_SAMPLES
        if is_full or (lines and sum(map(len, lines)) + len(line) > MAX_CHUNK_BYTES):
            yield lines
            lines = []
        lines.append(line)
    yield lines


def _to_json(value: BaseModel) -> bytes:
    return value.model_dump_json(exclude_none=True).encode()


def _parse_attempt_name(name: str) -> tuple[int, int] | None:
    epoch, _, number = name.removesuffix(".json").partition("-")
    if not name.endswith(".json") or not (epoch.isdecimal() and number.isdecimal()):
        return None
    return int(epoch), int(number)


async def list_sample_ids(folder: ReadableBatch, record: BatchRecord) -> list[str]:
    """List the ids of the samples, in the order of the dataset. Raises Altered."""
    ids: list[str] = []
    for number in range(record.chunks):
        ids += [sample.id for sample in await folder.read_chunk(record.samples, number)]
    return ids


async def read_current_results(
    folder: ReadableBatch, record: BatchRecord
) -> AsyncIterator[SampleResult]:
    """Yield every sample of the batch that has a result, as `BatchFolder.read_results` does.

    The dataset may have been changed or cut: results of samples that it lost stay in the store, and
    do not count. Raises Altered.
    """
    ids = frozenset(await list_sample_ids(folder, record))
    async for result in folder.read_results():
        if result.id not in ids:
            continue
        attempts = tuple(
            attempt for attempt in result.attempts if attempt.epoch < record.spec.epochs
        )
        if attempts:
            yield result.model_copy(update={"attempts": attempts})
