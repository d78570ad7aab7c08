"""A whole batch as one Inspect log, sample by sample."""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import BinaryIO

from cli.chosen import Batch, Tried
from cli.output import note
from evaluation.inspect_log import told_of, trial_of
from evaluation.result import SampleResult
from events.entry import Entry
from exports.format import About, Part
from exports.inspect_batch import BatchLog
from exports.inspect_log import INSPECT
from exports.inspect_sample import Trial
from storage.conversations import exists
from storage.counted import sample_ids
from storage.errors import Altered
from storage.exporting import about, export
from storage.log import EventLog
from storage.state import legible_state

PERDURE = version("perdure")

AT_ONCE = 16
"""Samples that are asked about at the same time; their logs are read one by one."""


@dataclass(frozen=True)
class Known:
    """A sample before its log is read; `lacks` says why that cannot be."""

    log: EventLog
    trial: Trial
    told: About
    lacks: str = ""


async def write(batch: Batch, file: BinaryIO) -> bool:
    """Whether all conversations could be read.

    What could not is named, and is a sample all the same: without its messages, so that what is
    counted is what the batch has.
    """
    made, whole = BatchLog(), True
    for first in range(0, len(batch.attempts), AT_ONCE):
        some = batch.attempts[first : first + AT_ONCE]
        for known in await asyncio.gather(*(_known(batch, one) for one in some)):
            whole = await _sample(made, known, file) and whole
    summary = batch.tally.summary(batch.kept.expected)
    ids = await sample_ids(batch.folder, batch.kept)
    file.writelines(made.end(told_of(batch.kept.spec, summary, ids, PERDURE)))
    return whole


async def _known(batch: Batch, one: Tried) -> Known:
    """Raises Altered where the result itself cannot be read."""
    trial = await _trial(batch, one)
    log = EventLog(batch.folder.store, batch.folder.user_id, one.conversation_id)
    model = batch.kept.spec.agent.model.name
    blank = About(one.conversation_id, "error", model=model, version=PERDURE)
    try:
        if not await exists(log.store, log.user_id, log.conversation_id):
            return Known(log, trial, replace(blank, reason="It has no log."), "It has no log.")
        state, _ = await legible_state(log)
        told = await about(log, state, PERDURE)
    except Altered as error:
        return Known(log, trial, replace(blank, reason=f"{error}"), f"{error}")
    return Known(log, trial, replace(told, model=told.model or model))


async def _sample(made: BatchLog, known: Known, file: BinaryIO) -> bool:
    name = f"{known.log.conversation_id} of {known.trial.id!r}"
    if known.lacks:
        note(f"{name} is a sample without messages: {known.lacks}", "red")
        file.writelines(made.sample(known.told, known.trial, ()))
        return False
    altered: list[Altered] = []

    def parts(told: About, entries: Iterable[Entry]) -> Iterator[Part]:
        pieces = made.sample(told, known.trial, _legible(entries, altered))
        return (Part("", piece) for piece in pieces)

    def take(part: Part) -> None:
        file.write(part.body)

    lost = await export(known.log, replace(INSPECT, parts=parts), known.told, take)
    for slot in (*lost, *altered):
        note(f"{name}: {slot}", "red")
    return not lost and not altered


async def _trial(batch: Batch, one: Tried) -> Trial:
    """Raises Altered."""
    results = [
        result
        for number in range(one.number + 1)
        if (result := await batch.folder.result(one.sample, one.epoch, number))
    ]
    attempts = tuple(attempt for result in results for attempt in result.attempts)
    whole = SampleResult.model_validate({**dict(results[-1]), "attempts": attempts})
    return trial_of(whole, attempts[-1], batch.kept.spec)


def _legible(entries: Iterable[Entry], altered: list[Altered]) -> Iterator[Entry]:
    """Up to what cannot be read at all, which is kept in mind."""
    try:
        yield from entries
    except Altered as error:
        altered.append(error)
