"""Batches as the API starts and shows them."""

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from perdure.agent.named import EXTENDS
from perdure.api.batches import Batch, BatchResults
from perdure.client.access import find_access
from perdure.client.batch.handle import BatchHandle
from perdure.errors import Invalid, NotFound
from perdure.evaluation.progress import Progress
from perdure.evaluation.result import SampleResult
from perdure.evaluation.sample import InvalidSample, Sample, build_sample
from perdure.evaluation.scorers.custom import CustomScorer
from perdure.evaluation.scorers.model_graded import ModelGraded
from perdure.evaluation.spec import BatchSpec, InvalidBatch, parse_batch
from perdure.events.content import ImageContent
from perdure.gateway.agents.catalog import AgentCatalog, AgentUser
from perdure.gateway.agents.policy import AgentPolicy, list_secrets
from perdure.storage.batches import BatchFolder, BatchRecord
from perdure.storage.errors import Altered

SENT_DATASET = "samples.jsonl"
"""The name of a dataset that was sent."""

PARALLEL_READS = 8

_CURSOR = re.compile(r"([0-9a-f]{16})\.([0-9]{1,7})\.([0-9]{1,7})")


async def parse_request(
    table: Mapping[str, JsonValue], catalog: AgentCatalog, user: AgentUser
) -> BatchSpec:
    """Parse the specification of a user's request.

    Raises Invalid for what may not be, Altered, StoreUnavailable.
    """
    if "dataset" in table or "models" in table:
        name = "dataset" if "dataset" in table else "models"
        hint = "Send the rows as `samples`, and start a batch for each model."
        raise Invalid(f"A batch that is sent has no `{name}`.", hint)
    fields: dict[str, Any] = {**table, "dataset": {"path": SENT_DATASET}}
    agent = fields.get("agent")
    is_named = not isinstance(agent, Mapping) or EXTENDS in agent
    if is_named:
        model = fields.pop("model", None)
        named_model = model if isinstance(model, str) else None
        chosen = await catalog.choose(user, agent, named_model)
        fields["agent"] = chosen.model_dump(mode="json", exclude_unset=True)
    try:
        batch = parse_batch(fields)
    except InvalidBatch as error:
        raise Invalid(str(error)) from error
    if not is_named:
        own_secrets = await user.list_secrets() if any(list_secrets(batch.agent).values()) else ()
        catalog.policy.check(batch.agent, own_secrets=own_secrets)
    _check_scorers(batch, catalog.policy)
    return batch


def _check_scorers(batch: BatchSpec, policy: AgentPolicy) -> None:
    """Raises Invalid."""
    for scorer in batch.scorers:
        if isinstance(scorer, CustomScorer) and not policy.is_trusting:
            raise Invalid(
                f"The scorer {scorer.function!r} is code, which may not be named here.",
                "Use scorers by kind, such as `match` or `model_graded`.",
            )
        if isinstance(scorer, ModelGraded) and scorer.model is not None:
            policy.check(batch.agent.model_copy(update={"model": scorer.model}), batch.agent)


def check_rows(rows: Sequence[Mapping[str, Any]], policy: AgentPolicy) -> None:
    """Check that no row names an image by its address. Raises Invalid."""
    if policy.is_trusting:
        return
    for number, row in enumerate(rows, 1):
        try:
            sample = build_sample({"input": row.get("input")})
        except InvalidSample:
            continue  # reading the rows says why, or the columns have other names
        if any(not url.startswith("data:") for url in _list_images(sample)):
            raise Invalid(
                f"An image of row {number} is an address, which may not be here.",
                "Send the image itself, as data:image/png;base64,...",
            )


def _list_images(sample: Sample) -> list[str]:
    parts = [part for message in sample.input for part in message.content]
    return [url for part in parts if isinstance(part, ImageContent) for url in part.image_urls]


async def show_batch(handle: BatchHandle, with_trouble: bool = True) -> Batch:
    """Describe a batch with its progress. Raises NotFound and StoreError."""
    record = await handle.load_record()
    progress = await handle.status()
    trouble = None
    if with_trouble and progress.status == "running":
        found = await handle.diagnose()
        trouble = found.sentence if found else None
    return await _describe(handle, record, progress, trouble)


async def show_all(handles: Iterable[BatchHandle]) -> list[Batch]:
    """Describe batches, also damaged ones; those that are gone meanwhile are left out."""
    turns = asyncio.Semaphore(PARALLEL_READS)

    async def show(handle: BatchHandle) -> Batch | None:
        async with turns:
            try:
                record = await handle.load_record()
                progress = await handle.status()
            except NotFound:
                return None
            except Altered as error:
                progress = Progress(name=handle.name, status="stopped", reason=str(error))
            return await _describe(handle, record, progress)

    return [batch for batch in await asyncio.gather(*map(show, handles)) if batch is not None]


async def _describe(
    handle: BatchHandle, record: BatchRecord, progress: Progress, trouble: str | None = None
) -> Batch:
    return Batch(
        name=record.spec.name,
        progress=progress,
        model=record.spec.agent.model.name,
        samples=record.count,
        sample_set=record.samples,
        chunks=record.chunks,
        epochs=record.spec.epochs,
        owner=handle.folder.user_id,
        access=await find_access(handle.folder.store),
        attached=handle.attached,
        trouble=trouble,
    )


@dataclass(frozen=True)
class _Place:
    """A place in a set of samples."""

    samples: str
    chunk: int = 0
    line: int = 0

    def __str__(self) -> str:
        return f"{self.samples}.{self.chunk}.{self.line}"


async def read_results(
    folder: BatchFolder, record: BatchRecord, limit: int, cursor: str | None
) -> BatchResults:
    """Read a page of results in the order of the samples. Raises Invalid and StoreError."""
    place = _parse_cursor(cursor, record)
    items: list[SampleResult] = []
    chunk, line = place.chunk, place.line
    while chunk < record.chunks and len(items) < limit:
        samples = (await folder.read_chunk(record.samples, chunk))[line:]
        part = samples[: limit - len(items)]
        items += await _read_samples(folder, part, record.spec.epochs)
        line += len(part)
        if len(part) == len(samples):
            chunk, line = chunk + 1, 0
    ended = chunk >= record.chunks
    following = None if ended else str(_Place(record.samples, chunk, line))
    return BatchResults(items=tuple(items), next_cursor=following)


def _parse_cursor(cursor: str | None, record: BatchRecord) -> _Place:
    if cursor is None:
        return _Place(record.samples)
    parts = _CURSOR.fullmatch(cursor)
    if parts is None or parts[1] != record.samples:
        raise Invalid("The cursor is none of these results.", "Begin without one.")
    return _Place(parts[1], int(parts[2]), int(parts[3]))


async def _read_samples(
    folder: BatchFolder, samples: Sequence[Sample], epochs: int
) -> list[SampleResult]:
    turns = asyncio.Semaphore(PARALLEL_READS)

    async def read(sample: Sample) -> SampleResult:
        async with turns:
            places = await folder.list_attempts(sample.id)
            found = [
                await folder.read_result(sample.id, epoch, number)
                for epoch, number in places
                if epoch < epochs
            ]
        return SampleResult(
            id=sample.id,
            target=sample.target,
            metadata=sample.metadata,
            attempts=tuple(attempt for result in found if result for attempt in result.attempts),
        )

    return list(await asyncio.gather(*map(read, samples)))


async def find_result(folder: BatchFolder, record: BatchRecord, name: str) -> SampleResult:
    """Find a sample with all its attempts; one that the batch does not have has none."""
    places = await folder.list_attempts(name)
    found = [
        await folder.read_result(name, epoch, number)
        for epoch, number in places
        if epoch < record.spec.epochs
    ]
    results = [result for result in found if result is not None]
    if not results:
        return SampleResult(id=name)
    attempts = tuple(attempt for result in results for attempt in result.attempts)
    return results[0].model_copy(update={"attempts": attempts})
