"""The command lines of worker and gateway, apart from the stack: its modules import slowly."""

import sys
from collections.abc import Sequence

# Without -P, a module in the current folder would shadow an installed one.
WORKER_COMMAND = (sys.executable, "-P", "-m", "perdure.worker")


def worker_command(processes: int, arguments: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the command of a worker with that many processes; 0 is one for each core."""
    if processes == 1:
        return (*WORKER_COMMAND, *arguments)
    module = "perdure.operations.worker.processes"
    return (*WORKER_COMMAND[:-1], module, str(processes), *arguments)


GATEWAY_COMMAND = (sys.executable, "-P", "-m", "perdure.gateway")
"""The command line of a gateway, without its address."""
