"""`perdure worker`: a worker in place of this process."""

import os
import sys

from cli.output import Format
from cli.performing import command_app, perform
from cli.stack import place
from embedded.stack import WORKER

app = command_app()


@app.command()
def worker() -> None:
    """Run a worker in this process.

    It works for the configured Temporal and store, else for the stack of `perdure dev`, until it is
    told to end by ^C or SIGTERM.
    """
    perform(_become_a_worker(), Format.text)


async def _become_a_worker() -> None:
    await place()  # puts a running stack's addresses into the environment
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os.execv(WORKER[0], WORKER)
