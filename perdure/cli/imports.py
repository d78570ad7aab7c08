"""Imports of the work of commands: without what makes them slower, and never silent for long."""

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic

REPORT_INTERVAL = 1.5
"""Seconds between two lines on an import that takes long."""


def avoid_plugin_search() -> None:
    """Have pydantic search no installed package for plugins, in this process and its children."""
    os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"


@contextmanager
def quick_imports() -> Iterator[None]:
    """Import modules without garbage collection, for what is imported stays.

    A person at a terminal is told of an import that takes long, as the first one on a machine may.
    """
    done = Event()
    if sys.stderr.isatty():
        Thread(target=_report, args=(done, monotonic()), daemon=True).start()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
        done.set()


def _report(done: Event, began: float) -> None:
    while not done.wait(REPORT_INTERVAL):
        seconds = monotonic() - began
        print(f"perdure loads its libraries ({seconds:.0f} s) ...", file=sys.stderr, flush=True)
