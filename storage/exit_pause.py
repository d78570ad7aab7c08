"""A pause before the interpreter ends, for threads of libraries written in Rust.

Requests that a program cancels at its end are dropped by threads of Temporal's client and of
obstore. One that wants the interpreter's lock after the interpreter has begun to end aborts the
process: Python 3.11 ends such a thread, and what it unwinds releases a lock that it does not hold.
"""

import atexit
import time
from functools import cache

SECONDS = 0.05
"""Time for what was cancelled to be dropped."""


@cache
def pause_at_exit() -> None:
    """Pause once at the end of this process."""
    atexit.register(time.sleep, SECONDS)
