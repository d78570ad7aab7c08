"""`perdure worker`: run a worker in place of this process."""

import os
import sys

from perdure.cli.environment import find_environment
from perdure.embedded.stack import WORKER_COMMAND


async def execute() -> None:
    await find_environment()  # puts a running stack's addresses into the environment
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os.execv(WORKER_COMMAND[0], WORKER_COMMAND)
