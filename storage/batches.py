"""A batch in a store: its spec, its samples, and what came of every attempt at them.

An attempt's result is written once, under a key of its own: nobody has to read, change and write
what others write too, so none is lost, whoever is killed and whoever comes late.
"""

import asyncio
import hashlib
from array import array
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Sequence
from itertools import pairwise
from typing import Any

from pydantic import Field, JsonValue, ValidationError

from evaluation.result import Attempt, SampleResult
from evaluation.sample import Sample
from evaluation.spec import BatchSpec
from events.base import Tolerant
from storage.errors import Altered
from storage.keys import (
    BATCH,
    RESULTS,
    attempt_key,
    batch_prefix,
    batches_prefix,
    chunk_key,
    grading_key,
    result_folder,
)
from storage.store import Store

MOST_SAMPLES = 100
"""Samples in one object."""

MOST_BYTES = 1024 * 1024
"""Of an object of samples, unless a single one is larger."""

AT_ONCE = 32
"""Objects that are read at the same time."""

PAGE = 1000

CHUNKS = 8
"""Objects of samples that are kept in memory."""


class Kept(Tolerant):
    """What a batch is now. `samples` names the set, of `count` samples in `chunks` objects.

    `options` is what else its last run was asked for: for people, not for programs.
    """

    spec: BatchSpec
    samples: str
    count: int
    chunks: int
    version: str = "0"
    options: dict[str, JsonValue] = Field(default_factory=dict)

    @property
    def expected(self) -> int:
        """Epochs of samples."""
        return self.count * self.spec.epochs


class BatchFolder:
    """One batch's part of a store. Raises ValueError where there can be no such batch."""

    def __init__(self, store: Store, user_id: str, name: str) -> None:
        self.store = store
        self.user_id = user_id
        self.name = name
        self._prefix = batch_prefix(user_id, name)
        self._chunks: OrderedDict[tuple[str, int], list[bytes]] = OrderedDict()

    async def kept(self) -> Kept | None:
        """None where there is no such batch. Raises Altered, and StoreUnavailable."""
        body = await self.store.read(self._prefix + BATCH)
        return None if body is None else self._read(Kept, BATCH, body)

    async def keep(self, kept: Kept) -> None:
        await self.store.replace(self._prefix + BATCH, _body(kept))

    async def keep_samples(self, samples: Iterable[Sample]) -> tuple[str, int, int]:
        """Write the samples; the name of the set, how many there are, and in how many objects.

        Twice the same samples are the same set. They are gone through twice: first for the name.
        """
        digest, ends, lines, size = hashlib.sha256(), array("Q", [0]), 0, 0
        count = 0
        for sample in samples:
            line = _line(sample)
            digest.update(line)
            if lines and (lines == MOST_SAMPLES or size + len(line) > MOST_BYTES):
                ends.append(count)
                lines, size = 0, 0
            lines, size, count = lines + 1, size + len(line), count + 1
        ends.append(count)
        name = digest.hexdigest()[:16]
        again = iter(samples)
        waiting: set[asyncio.Task[bool]] = set()
        for chunk, (first, end) in enumerate(pairwise(ends)):
            body = b"".join(_line(next(again)) for _ in range(end - first))
            key = self._prefix + chunk_key(name, chunk)
            waiting.add(asyncio.ensure_future(self.store.create(key, body)))
            if len(waiting) == AT_ONCE:
                done, waiting = await asyncio.wait(waiting, return_when="FIRST_COMPLETED")
                for one in done:
                    one.result()
        await asyncio.gather(*waiting)
        return name, count, len(ends) - 1

    async def chunk(self, samples: str, number: int) -> list[Sample]:
        """Raises Altered."""
        lines = await self._lines(samples, number)
        return [self._sample(samples, number, line) for line in lines]

    async def sample(self, samples: str, chunk: int, line: int) -> Sample:
        """Raises Altered."""
        lines = await self._lines(samples, chunk)
        if line >= len(lines):
            raise Altered(self._prefix + chunk_key(samples, chunk))
        return self._sample(samples, chunk, lines[line])

    async def attempts(self, sample: str) -> list[tuple[int, int]]:
        """Epoch and number of every attempt at a sample that has a result, in their order."""
        prefix = self._prefix + result_folder(sample)
        keys = await self.store.list(prefix)
        return sorted(filter(None, (_named(key[len(prefix) :]) for key in keys)))

    async def result(self, sample: str, epoch: int, number: int) -> SampleResult | None:
        """The sample with this one attempt; None where it has no result. Raises Altered."""
        key = attempt_key(sample, epoch, number)
        body = await self.store.read(self._prefix + key)
        return None if body is None else self._read(SampleResult, key, body)

    async def record(self, sample: Sample, attempt: Attempt) -> Attempt:
        """Write what came of an attempt, once; gives what is on record of it."""
        result = SampleResult(
            id=sample.id, target=sample.target, metadata=sample.metadata, attempts=(attempt,)
        )
        key = attempt_key(sample.id, attempt.epoch, attempt.number)
        if await self.store.create(self._prefix + key, _body(result)):
            return attempt
        held = await self.result(sample.id, attempt.epoch, attempt.number)
        if held is None or not held.attempts:
            raise Altered(self._prefix + key)
        return held.attempts[0]

    async def rescore(self, sample: Sample, attempt: Attempt) -> None:
        """Write an attempt again, whose scores were made anew."""
        result = SampleResult(
            id=sample.id, target=sample.target, metadata=sample.metadata, attempts=(attempt,)
        )
        key = attempt_key(sample.id, attempt.epoch, attempt.number)
        await self.store.replace(self._prefix + key, _body(result))

    async def grading(self, sample: str, epoch: int, number: int, scorer: str) -> bytes | None:
        """The reply of a grading model, where there is one already."""
        return await self.store.read(self._prefix + grading_key(sample, epoch, number, scorer))

    async def keep_grading(
        self, sample: str, epoch: int, number: int, scorer: str, body: bytes
    ) -> bytes:
        """Keep such a reply before anything is made of it; gives the one that is kept."""
        key = self._prefix + grading_key(sample, epoch, number, scorer)
        if await self.store.create(key, body):
            return body
        return await self.store.read(key) or body

    async def is_fresh(self) -> bool:
        """Whether nothing has a result yet."""
        return not await self.store.list(self._prefix + RESULTS, limit=1)

    async def results(self) -> AsyncIterator[SampleResult]:
        """Every sample that has a result, each once with all attempts, in the order of their keys.

        Few of them are held at a time. Raises Altered.
        """
        group: list[str] = []
        async for key in self._keys():
            folder = key.rpartition("/")[0]
            if group and group[0].rpartition("/")[0] != folder and len(group) >= AT_ONCE:
                for result in await self._whole(group):
                    yield result
                group = []
            group.append(key)
        for result in await self._whole(group):
            yield result

    async def _keys(self) -> AsyncIterator[str]:
        """Those of attempts, all of one sample in a row."""
        prefix, after = self._prefix + RESULTS, ""
        while True:
            page = await self.store.list(prefix, after=after)
            for key in page:
                if _named(key.rpartition("/")[2]) and key.count("/") == prefix.count("/") + 1:
                    yield key
            if len(page) < PAGE:
                return
            after = page[-1]

    async def _whole(self, keys: Sequence[str]) -> list[SampleResult]:
        """The samples of these attempts, put together."""
        found: dict[str, SampleResult] = {}
        bodies = await asyncio.gather(*map(self.store.read, keys))
        for key, body in zip(keys, bodies, strict=True):
            if body is None:
                continue
            part = self._read(SampleResult, key[len(self._prefix) :], body)
            before = found.get(part.id)
            if before is not None:
                both = (*before.attempts, *part.attempts)
                attempts = tuple(sorted(both, key=lambda one: (one.epoch, one.number)))
                part = part.model_copy(update={"attempts": attempts})
            found[part.id] = part
        return list(found.values())

    async def _lines(self, samples: str, number: int) -> list[bytes]:
        """The newest objects of samples stay in memory: they never change."""
        place = (samples, number)
        if place not in self._chunks:
            body = await self.store.read(self._prefix + chunk_key(samples, number))
            if body is None:
                raise Altered(self._prefix + chunk_key(samples, number))
            self._chunks[place] = body.splitlines()
            while len(self._chunks) > CHUNKS:
                self._chunks.popitem(last=False)
        self._chunks.move_to_end(place)
        return self._chunks[place]

    def _sample(self, samples: str, chunk: int, line: bytes) -> Sample:
        try:
            return Sample.model_validate_json(line)
        except ValidationError as error:
            raise Altered(self._prefix + chunk_key(samples, chunk)) from error

    def _read(self, kind: Any, key: str, body: bytes) -> Any:
        try:
            return kind.model_validate_json(body)
        except ValidationError as error:
            raise Altered(self._prefix + key) from error


async def batches(store: Store, user_id: str) -> list[str]:
    """The names of a user's batches, in their order."""
    prefix = batches_prefix(user_id)
    found: list[str] = []
    page: list[str] = []
    while not found or len(page) == PAGE:
        page = await store.folders(prefix, after=found[-1] if found else "", limit=PAGE)
        if not page:
            break
        found += page
    return found


def _line(sample: Sample) -> bytes:
    return sample.model_dump_json(exclude_none=True).encode() + b"\n"


def _body(value: Tolerant) -> bytes:
    return value.model_dump_json(exclude_none=True).encode()


def _named(name: str) -> tuple[int, int] | None:
    """Epoch and number in the name of an attempt's object."""
    epoch, _, number = name.removesuffix(".json").partition("-")
    if not name.endswith(".json") or not (epoch.isdecimal() and number.isdecimal()):
        return None
    return int(epoch), int(number)
