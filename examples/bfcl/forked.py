"""A worker as a forked process."""

import ctypes
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

from perdure import worker

PR_SET_PDEATHSIG = 1


def work(env: Mapping[str, str], log: Path) -> None:
    """Be a worker with these environment variables, whose output goes to `log`."""
    stand_alone()
    with log.open("wb") as output:
        os.dup2(output.fileno(), sys.stdout.fileno())
        os.dup2(output.fileno(), sys.stderr.fileno())
    os.environ.clear()
    os.environ.update(env)
    worker.main()


def stand_alone() -> None:
    """No ^C in the terminal reaches it; it ends with its parent, and that one with ours."""
    os.setsid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
