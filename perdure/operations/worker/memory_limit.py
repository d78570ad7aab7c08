"""The limit of a worker's memory: past it the worker drains, and is started again."""

import asyncio
import logging
import os
import resource
import sys
from pathlib import Path

from perdure.errors import Invalid
from perdure.operations.worker.options import format_size

logger = logging.getLogger("perdure.worker")

INTERVAL = 2.0
"""Seconds between two looks at the memory."""

STATM = Path("/proc/self/statm")


def read_memory() -> int:
    """Return the bytes of memory in which this process resides; elsewhere than on Linux, the peak.

    Programs that tools have started are processes of their own.
    """
    if STATM.exists():
        return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def check_limit(limit: int) -> None:
    """Raise Invalid for a limit that a worker without work is past already."""
    used = read_memory()
    if used >= limit:
        raise Invalid(
            f"A worker takes {format_size(used)} before it has done anything, and may take "
            f"{format_size(limit)}.",
            "Give --max-memory some hundred MiB more than that.",
        )


async def await_excess(limit: int | None) -> None:
    """Return once this process takes more memory than the limit, in bytes, and log it."""
    while limit is None or (used := read_memory()) <= limit:  # noqa: ASYNC110 - nothing tells it
        await asyncio.sleep(INTERVAL)
    logger.warning(
        "worker %d takes %s of memory, and may take %s: it takes no new work, ends when its steps "
        "have, and is to be started again",
        os.getpid(),
        format_size(used),
        format_size(limit),
    )
