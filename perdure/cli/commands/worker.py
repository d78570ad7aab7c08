"""The command that becomes a worker: it imports little, for all of it is dropped by the exec."""

import os
import sys

from perdure.cli.declarations import operations
from perdure.embedded.worker_command import worker_command
from perdure.operations.worker.options import KINDS, WorkerOptions, parse_size

STORE_VARIABLE = "PERDURE_STORE"
"""The variable of a store: where it is set, the worker itself finds and checks its settings."""


async def worker(options: operations.Worker) -> None:
    arguments = _read_options(options).as_arguments()
    if not os.environ.get(STORE_VARIABLE):
        from perdure.cli.environment import find_servers  # slow

        await find_servers()  # puts a running stack's addresses into the environment
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    command = worker_command(options.processes, arguments)
    os.execv(command[0], command)


def _read_options(options: operations.Worker) -> WorkerOptions:
    """Raises Invalid."""
    return WorkerOptions(
        kinds=frozenset(kind.value for kind in options.only or ()) or frozenset(KINDS),
        concurrency=options.concurrency,
        max_memory=None if options.max_memory is None else parse_size(options.max_memory),
        grace=options.grace,
        health_port=options.health_port,
    )
