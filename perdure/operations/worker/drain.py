"""The end of a worker: it takes no new work, and hands on what it has within a time."""

import asyncio
import logging
import os
import threading
from collections.abc import Sequence
from time import monotonic

from temporalio.worker import Worker

from perdure.operations.error_reports import EXIT_OK
from perdure.operations.process_exit import exit_process
from perdure.operations.worker.memory_limit import await_excess
from perdure.operations.worker.options import WorkerOptions
from perdure.operations.worker.readiness import WorkerReadiness
from perdure.temporal.worker_load import WorkerLoad

logger = logging.getLogger("perdure.worker")

EXIT_RESTART = 75
"""The exit code of a worker that has drained to be started again: EX_TEMPFAIL of sysexits.h."""


async def work_until(
    stop: asyncio.Event,
    workers: Sequence[Worker],
    readiness: WorkerReadiness,
    options: WorkerOptions,
) -> int:
    """Run Temporal workers until `stop`, or until they take too much memory; return the exit code.

    They then finish or hand on what they have at work. Raises what a worker fails with.
    """
    running = [asyncio.create_task(worker.run()) for worker in workers]
    stopping = asyncio.create_task(stop.wait())
    excess = asyncio.create_task(await_excess(options.max_memory))
    readiness.workers = workers
    ends = [stopping, excess, *running]
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    readiness.is_draining = True
    code = EXIT_RESTART if excess.done() and not stopping.done() else EXIT_OK
    stopping.cancel()
    excess.cancel()
    exit_at_last(options.grace, code)
    await drain(workers, readiness.load, options)
    for worker in running:
        await worker
    return code


async def drain(workers: Sequence[Worker], load: WorkerLoad, options: WorkerOptions) -> None:
    """Shut all workers down at once: none takes new work while another still finishes its own."""
    pid, began = os.getpid(), monotonic()
    sentence = "worker %d takes no new work: %d steps at work have %g s"
    logger.info(sentence, pid, load.at_work, options.step_grace)

    def report_cut() -> None:
        logger.warning("worker %d cuts off %d steps, and hands them on", pid, load.at_work)

    cut = asyncio.get_running_loop().call_later(options.step_grace, report_cut)
    await asyncio.gather(*(worker.shutdown() for worker in workers))
    cut.cancel()
    logger.info("worker %d has drained in %.1f s", pid, monotonic() - began)


def exit_at_last(grace: float, code: int) -> None:
    """Exit this process after `grace` seconds, whatever it waits for by then.

    It is a thread: a loop that is blocked, a store that does not answer or a tool that heeds no
    cancellation does not hold it up. Temporal notices that its steps are silent, and hands them on.
    """

    def end() -> None:
        logger.warning(
            "worker %d has not drained within %g s, and exits: others take up its steps",
            os.getpid(),
            grace,
        )
        exit_process(code)

    timer = threading.Timer(grace, end)
    timer.daemon = True
    timer.start()
