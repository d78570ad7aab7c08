"""The memory of a batch's worker while the batch runs."""

import asyncio
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from bench.batch_stage import BatchEnvironment
from bench.processes import cpu_seconds, memory_bytes

POLL_INTERVAL = 0.5
"""Seconds between two looks."""

REPORT_INTERVAL = 1_000
"""Samples after which it is told."""

MARKS = (100, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)


@dataclass(frozen=True)
class MemorySample:
    """Resident bytes, seconds of CPU of the worker and seconds at the end of `finished` samples."""

    finished: int
    worker: int
    temporal: int
    cpu: float
    time: float


async def measure_memory(
    stage: BatchEnvironment, samples: int, concurrency: int
) -> list[MemorySample]:
    """A batch of short samples, looked at all along; it takes long, and tells how far it is."""
    batch = await stage.batch("word", samples, concurrency)
    ended = asyncio.ensure_future(batch.wait_until_finished())
    seen = [take_sample(stage, 0)]
    while not ended.done():
        await asyncio.wait({ended}, timeout=POLL_INTERVAL)
        progress = await batch.query_progress()
        if progress is not None and progress.finished > seen[-1].finished:
            seen.append(take_sample(stage, progress.finished))
            if seen[-1].finished // REPORT_INTERVAL > seen[-2].finished // REPORT_INTERVAL:
                print(
                    f"{progress.finished} samples: {seen[-1].worker / 1e6:.0f} MB", file=sys.stderr
                )
    assert (await ended).scored == samples, await ended
    return seen


def take_sample(stage: BatchEnvironment, finished: int) -> MemorySample:
    return MemorySample(
        finished,
        memory_bytes(stage.worker_pid),
        memory_bytes(stage.temporal_pid),
        cpu_seconds(stage.worker_pid),
        time.perf_counter(),
    )


def make_table(seen: Sequence[MemorySample]) -> list[dict[str, Any]]:
    """Tabulate the measurements by finished samples; rates are those since the row before."""
    rows = [seen[0]]
    for mark in (*MARKS, seen[-1].finished):
        if mark <= seen[-1].finished:
            row = next(item for item in seen if item.finished >= mark)
            rows += [row] if row is not rows[-1] else []
    return [
        {
            "finished": now.finished,
            "worker_mb": now.worker / 1e6,
            "temporal_mb": now.temporal / 1e6,
            "cpu_ms": 1000 * (now.cpu - before.cpu) / (now.finished - before.finished),
            "per_second": (now.finished - before.finished) / (now.time - before.time),
        }
        for before, now in pairwise(rows)
    ]
