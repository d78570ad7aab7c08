"""Counts of model calls per sample, from the file that the model writes."""

import asyncio
from collections import Counter
from pathlib import Path


def count_calls(file: Path, prefix: str = "") -> Counter[str]:
    """Count the calls of each sample whose name begins so."""
    lines = file.read_text().split() if file.exists() else ()
    return Counter(line for line in lines if line.startswith(prefix))


def count_repeats(file: Path, prefix: str = "") -> dict[str, float]:
    """Calls that had been made before, and samples for which that is so."""
    calls = count_calls(file, prefix)
    more = {sample: times - 1 for sample, times in calls.items() if times > 1}
    return {"calls_again": sum(more.values()), "samples_again": len(more)}


async def wait_for_half(file: Path, samples: int, prefix: str = "") -> None:
    """Until half of the samples have had their answer."""
    async with asyncio.timeout(3600):
        while len(count_calls(file, prefix)) < samples // 2:
            await asyncio.sleep(0.002)
