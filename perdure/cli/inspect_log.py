"""Export of a whole batch as one Inspect log, sample by sample."""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import BinaryIO

from perdure.cli.export_selection import AttemptRef, BatchSelection
from perdure.cli.output import note
from perdure.evaluation.result import SampleResult
from perdure.events.entry import Entry
from perdure.exports.format import ExportMetadata, Part
from perdure.exports.inspect_evaluation import batch_header, sample_metadata
from perdure.exports.inspect_log import INSPECT, InspectLog
from perdure.exports.inspect_sample import SampleMetadata
from perdure.storage.batches import list_sample_ids
from perdure.storage.conversations import conversation_exists
from perdure.storage.errors import Altered
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.exporting import export, export_metadata
from perdure.storage.log.state import read_state_until_damage

PERDURE_VERSION = version("perdure")

MAX_CONCURRENT_SAMPLES = 16
"""Samples prepared at a time; their logs are read one by one."""


@dataclass(frozen=True)
class PreparedSample:
    """A sample whose log is still to be read; `problem` says why it cannot be."""

    log: EventLog
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
        for sample in await asyncio.gather(
            *(_prepare_sample(batch, attempt) for attempt in attempts)
        ):
            complete = await _write_sample(batch_log, sample, file) and complete
    summary = batch.tally.summary(batch.record.expected_attempts)
    ids = await list_sample_ids(batch.folder, batch.record)
    file.writelines(
        batch_log.write_end(batch_header(batch.record.spec, summary, ids, PERDURE_VERSION))
    )
    return complete


async def _prepare_sample(batch: BatchSelection, attempt: AttemptRef) -> PreparedSample:
    """Load the result of an attempt. Raises Altered where the result itself cannot be read."""
    trial = await _load_trial(batch, attempt)
    log = EventLog(batch.folder.store, batch.folder.user_id, attempt.conversation_id)
    model = batch.record.spec.agent.model.name
    blank = ExportMetadata(attempt.conversation_id, "error", model=model, version=PERDURE_VERSION)
    try:
        if not await conversation_exists(log.store, log.user_id, log.conversation_id):
            return PreparedSample(
                log, trial, replace(blank, reason="It has no log."), "It has no log."
            )
        state, _ = await read_state_until_damage(log)
        metadata = await export_metadata(log, state, PERDURE_VERSION)
    except Altered as error:
        return PreparedSample(log, trial, replace(blank, reason=f"{error}"), f"{error}")
    return PreparedSample(log, trial, replace(metadata, model=metadata.model or model))


async def _write_sample(batch_log: InspectLog, sample: PreparedSample, file: BinaryIO) -> bool:
    name = f"{sample.log.conversation_id} of {sample.trial.id!r}"
    if sample.problem:
        note(f"{name} is a sample without messages: {sample.problem}", "red")
        file.writelines(batch_log.write_sample(sample.metadata, sample.trial, ()))
        return False
    altered: list[Altered] = []

    def parts(metadata: ExportMetadata, entries: Iterable[Entry]) -> Iterator[Part]:
        pieces = batch_log.write_sample(metadata, sample.trial, _readable_entries(entries, altered))
        return (Part("", piece) for piece in pieces)

    def take(part: Part) -> None:
        file.write(part.body)

    lost = await export(sample.log, replace(INSPECT, parts=parts), sample.metadata, take)
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
