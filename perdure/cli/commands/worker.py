"""The command that becomes a worker: it imports little, for all of it is dropped by the exec."""

import os
import sys

from perdure.cli.declarations import operations
from perdure.embedded.worker_command import worker_command

STORE_VARIABLE = "PERDURE_STORE"
"""The variable of a store: where it is set, the worker itself finds and checks its settings."""


async def worker(options: operations.Worker) -> None:
    if not os.environ.get(STORE_VARIABLE):
        from perdure.cli.environment import find_servers  # slow

        await find_servers()  # puts a running stack's addresses into the environment
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    command = worker_command(options.processes)
    os.execv(command[0], command)
