"""Batches that were run at some time, in a folder, and a command with nothing but it."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluation.result import Attempt
from evaluation.sample import conversation_id, sample_of
from evaluation.spec import batch_of
from storage.batches import BatchFolder, Kept
from storage.open import open_store
from tests.cli.command import Perdure, clean_environment
from tests.evaluation.results import attempt


def alone(folder: Path) -> Perdure:
    """No Temporal answers to it."""
    env = {
        "PERDURE_STORE": (folder / "store").as_uri(),
        "PERDURE_DATA": str(folder / "data"),
        "TEMPORAL_ADDRESS": "127.0.0.1:1",
    }
    return Perdure({**clean_environment(), **env})


async def keep(
    folder: Path, name: str, values: Mapping[str, list[Any]], expected: int, **spec: Any
) -> None:
    """A batch whose samples have these scores, one an epoch; `expected` says how many it has.

    None is an attempt that failed.
    """
    given = {
        "name": name,
        "dataset": "sums.jsonl",
        "model": "openai/big",
        "agent": {},
        "scorers": ["exact"],
    }
    batch = batch_of(given | spec)
    store = open_store((folder / "store").as_uri())
    try:
        place = BatchFolder(store, "local", name)
        others = [f"unrun-{one}" for one in range(expected - len(values))]
        samples = {
            one: sample_of({"id": one, "input": "?", "target": "1", "metadata": {"kind": one[0]}})
            for one in [*values, *others]
        }
        set_name, count, chunks = await place.keep_samples(list(samples.values()))
        await place.keep(Kept(spec=batch, samples=set_name, count=count, chunks=chunks))
        await asyncio.gather(
            *(
                place.record(samples[sample], _attempt(name, sample, epoch, value))
                for sample, epochs in values.items()
                for epoch, value in enumerate(epochs)
            )
        )
    finally:
        await store.close()


def _attempt(batch: str, sample: str, epoch: int, value: Any) -> Attempt:
    return attempt(value, epoch, conversation_id=conversation_id(batch, sample, epoch))
