"""Selection of the attempts of a batch, and its export as one Inspect log, sample by sample."""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import BinaryIO, NamedTuple

from perdure.cli.environment import open_batch
from perdure.cli.output import note
from perdure.evaluation.result import SampleResult
from perdure.evaluation.summary import Tally
from perdure.events.entry import Entry
from perdure.exports.format import ExportMetadata
from perdure.exports.inspect_evaluation import batch_header, sample_metadata
from perdure.exports.inspect_log import InspectLog
from perdure.exports.inspect_sample import SampleMetadata
from perdure.storage.batches import BatchRecord, list_sample_ids, read_current_results
from perdure.storage.errors import Altered
from perdure.storage.log.exporting import export_metadata, read_in_thread
from perdure.storage.log.readable import ReadableLog
from perdure.storage.log.state import read_state_until_damage
from perdure.storage.readable_batch import ReadableBatch

PERDURE_VERSION = version("perdure")

MAX_CONCURRENT_SAMPLES = 16
"""Samples prepared at a time; their logs are read one by one."""


class AttemptRef(NamedTuple):
    """An attempt at a sample; they are exported in the order of these fields."""

    sample: str
    epoch: int
    number: int
    conversation_id: str
    folder: ReadableBatch


@dataclass(frozen=True)
class BatchSelection:
    """A batch as it is now, with the attempts to export."""

    folder: ReadableBatch
    record: BatchRecord
    tally: Tally
    attempts: tuple[AttemptRef, ...]


async def select_batch(name: str, every: bool = False) -> BatchSelection:
    """Select the final attempts of a batch, or `every` one. Raises NotFound and Altered."""
    folder, record = await open_batch(name)
    tally, attempts = Tally(record.spec.reducers), []
    async for result in read_current_results(folder, record):
        tally.add(result)
        attempts += [
            AttemptRef(result.id, attempt.epoch, attempt.number, attempt.conversation_id, folder)
            for attempt in (result.attempts if every else result.final_attempts)
        ]
    return BatchSelection(folder, record, tally, tuple(sorted(attempts)))


@dataclass(frozen=True)
class PreparedSample:
    """A sample whose log is still to be read; `problem` says why it cannot be."""

    log: ReadableLog
    trial: SampleMetadata
    metadata: ExportMetadata
    problem: str = ""


async def write_batch_log(batch: BatchSelection, file: BinaryIO) -> bool:
    """Write all samples; true if every conversation could be read.

    An unreadable one is named on stderr and written without messages, so that the log has as many
    samples as the batch.
    """
    batch_log, complete = InspectLog(), True
    for first in range(0, len(batch.attempts), MAX_CONCURRENT_SAMPLES):
        attempts = batch.attempts[first : first + MAX_CONCURRENT_SAMPLES]
        samples = await asyncio.gather(*(_prepare_sample(batch, attempt) for attempt in attempts))
        for sample in samples:
            complete = await _write_sample(batch_log, sample, file) and complete
    summary = batch.tally.summary(batch.record.expected_attempts)
    ids = await list_sample_ids(batch.folder, batch.record)
    header = batch_header(batch.record.spec, summary, ids, PERDURE_VERSION)
    file.writelines(batch_log.write_end(header))
    return complete


async def _prepare_sample(batch: BatchSelection, attempt: AttemptRef) -> PreparedSample:
    """Load the result of an attempt. Raises Altered where the result itself cannot be read."""
    trial = await _load_trial(batch, attempt)
    log = batch.folder.open_log(attempt.conversation_id)
    model = batch.record.spec.agent.model.name
    try:
        if await log.exists():
            state, _ = await read_state_until_damage(log)
            metadata = await export_metadata(log, state, PERDURE_VERSION)
            return PreparedSample(log, trial, replace(metadata, model=metadata.model or model))
        problem = "It has no log."
    except Altered as error:
        problem = str(error)
    blank = ExportMetadata(
        log.conversation_id, "error", reason=problem, model=model, version=PERDURE_VERSION
    )
    return PreparedSample(log, trial, blank, problem)


async def _write_sample(batch_log: InspectLog, sample: PreparedSample, file: BinaryIO) -> bool:
    name = f"{sample.log.conversation_id} of {sample.trial.id!r}"
    if sample.problem:
        note(f"{name} is a sample without messages: {sample.problem}", "red")
        file.writelines(batch_log.write_sample(sample.metadata, sample.trial, ()))
        return False
    altered: list[Altered] = []

    def write(entries: Iterable[Entry]) -> None:
        readable = _readable_entries(entries, altered)
        file.writelines(batch_log.write_sample(sample.metadata, sample.trial, readable))

    lost = await read_in_thread(sample.log, write)
    for slot in (*lost, *altered):
        note(f"{name}: {slot}", "red")
    return not lost and not altered


async def _load_trial(batch: BatchSelection, attempt: AttemptRef) -> SampleMetadata:
    """Load an attempt with all before it. Raises Altered."""
    results = [
        result
        for number in range(attempt.number + 1)
        if (result := await batch.folder.read_result(attempt.sample, attempt.epoch, number))
    ]
    attempts = tuple(attempt for result in results for attempt in result.attempts)
    result = SampleResult.model_validate({**dict(results[-1]), "attempts": attempts})
    return sample_metadata(result, attempts[-1], batch.record.spec)


def _readable_entries(entries: Iterable[Entry], altered: list[Altered]) -> Iterator[Entry]:
    """Yield the entries up to the first unreadable one, which goes into `altered`."""
    try:
        yield from entries
    except Altered as error:
        altered.append(error)
