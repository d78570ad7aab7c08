"""The command lines of worker and gateway, apart from the stack: its modules import slowly."""

import sys

# Without -P, a module in the current folder would shadow an installed one.
WORKER_COMMAND = (sys.executable, "-P", "-m", "perdure.worker")


def worker_command(processes: int) -> tuple[str, ...]:
    """Return the command of a worker with that many processes; 0 is one for each core."""
    if processes == 1:
        return WORKER_COMMAND
    return (*WORKER_COMMAND[:-1], "perdure.operations.worker_processes", str(processes))


GATEWAY_COMMAND = (sys.executable, "-P", "-m", "perdure.gateway")
"""The command line of a gateway, without its address."""
