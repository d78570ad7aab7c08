"""How a process of ours ends that has talked to Temporal."""

import contextlib
import os
import sys
from typing import NoReturn


def end(code: int) -> NoReturn:
    """End with this code, and at once.

    A thread of Temporal's client that comes back to an interpreter which is being taken down
    aborts the process: on a busy machine 2 commands of 60 ended with a SIGABRT for their code.
    """
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
