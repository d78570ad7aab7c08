"""Worker processes side by side: `python -m perdure.operations.worker_processes N`.

A worker is one Python process, which uses one core. The processes share the data folder and the
task queue, so that the steps of a conversation may run in any of them.
"""

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Sequence
from time import monotonic

from perdure.embedded.process import describe_exit, die_with_parent
from perdure.embedded.worker_command import WORKER_COMMAND
from perdure.operations.error_reports import EXIT_OK, EXIT_USAGE
from perdure.operations.process import configure_logs, stop_signal

logger = logging.getLogger("perdure.worker")

STABLE_AFTER = 10.0
"""Seconds after which an end is no failure of the start."""

MAX_BACKOFF = 30.0
"""Seconds until the next start of a process that ends soon after each start."""


def count_cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


async def run_processes(count: int, command: Sequence[str] = WORKER_COMMAND) -> int:
    """Run `count` worker processes until SIGINT or SIGTERM; return the exit code.

    All end when one of them finds its configuration wrong, which no other start can mend.
    """
    stop = stop_signal()
    keepers = [asyncio.create_task(_keep_running(nth, command, stop)) for nth in range(count)]
    try:
        for ended in asyncio.as_completed(keepers):
            if code := await ended:
                return code
        return EXIT_OK
    finally:
        stop.set()
        await asyncio.wait(keepers)


async def _keep_running(nth: int, command: Sequence[str], stop: asyncio.Event) -> int:
    """Start the process again whenever it dies; return an exit code that is final."""
    name, backoff = f"worker process {nth + 1}", 0.0
    while not stop.is_set():
        started = monotonic()
        code = await _run_process(command, stop)
        if stop.is_set() or code == EXIT_USAGE:
            return 0 if stop.is_set() else code
        is_stable = monotonic() - started >= STABLE_AFTER
        backoff = 0.0 if is_stable else min(MAX_BACKOFF, 2 * backoff or 0.1)
        logger.warning(
            "%s ended (%s) and is started again in %g s", name, describe_exit(code), backoff
        )
        await _wait(stop, backoff)
    return EXIT_OK


async def _run_process(command: Sequence[str], stop: asyncio.Event) -> int:
    """Run a process to its end, which `stop` brings about; return its exit code."""
    process = await asyncio.create_subprocess_exec(
        *die_with_parent(list(command)), stdin=asyncio.subprocess.DEVNULL, start_new_session=True
    )
    end, stopping = asyncio.create_task(process.wait()), asyncio.create_task(stop.wait())
    await asyncio.wait({end, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not end.done():
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
    return await end


async def _wait(stop: asyncio.Event, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), seconds)


def main() -> None:
    """Run the processes; 0 stands for one for each core."""
    configure_logs()
    sys.exit(asyncio.run(run_processes(int(sys.argv[1]) or count_cores())))


if __name__ == "__main__":
    main()
