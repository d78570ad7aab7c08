"""Finished batches in a folder, and a command with only that store."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perdure.evaluation.result import AttemptResult
from perdure.evaluation.sample import build_sample, conversation_id
from perdure.evaluation.spec import parse_batch
from perdure.storage.batches import BatchFolder, BatchRecord
from perdure.storage.open import open_store
from tests.evaluation.results import attempt


async def record_batch(
    folder: Path, name: str, values: Mapping[str, list[Any]], expected: int, **spec: Any
) -> None:
    """Record a batch of `expected` samples with these scores, one for each epoch.

    A score of None is a failed attempt.
    """
    defaults = {
        "name": name,
        "dataset": "sums.jsonl",
        "model": "openai/big",
        "agent": {},
        "scorers": ["exact"],
    }
    batch = parse_batch(defaults | spec)
    store = open_store((folder / "store").as_uri())
    try:
        folder_of_batch = BatchFolder(store, "local", name)
        unrun = [f"unrun-{name}" for name in range(expected - len(values))]
        samples = {
            name: build_sample(
                {"id": name, "input": "?", "target": "1", "metadata": {"kind": name[0]}}
            )
            for name in [*values, *unrun]
        }
        set_name, count, chunks = await folder_of_batch.write_samples(list(samples.values()))
        await folder_of_batch.save(
            BatchRecord(spec=batch, samples=set_name, count=count, chunks=chunks)
        )
        await asyncio.gather(
            *(
                folder_of_batch.record_attempt(
                    samples[sample], _make_attempt(name, sample, epoch, value)
                )
                for sample, epochs in values.items()
                for epoch, value in enumerate(epochs)
            )
        )
    finally:
        await store.close()


def _make_attempt(batch: str, sample: str, epoch: int, value: Any) -> AttemptResult:
    return attempt(value, epoch, conversation_id=conversation_id(batch, sample, epoch))
