"""A process that runs until it is stopped: its logs, and the signals that stop it."""

import asyncio
import logging
import signal

LOG_FORMAT = "%(asctime)s %(process)d %(levelname)s %(message)s"


def configure_logs(name: str = "perdure.worker") -> None:
    """Log warnings of all libraries, and all that the logger of a name reports."""
    logging.basicConfig(level=logging.WARNING, format=LOG_FORMAT)
    logging.getLogger(name).setLevel(logging.INFO)


def stop_signal() -> asyncio.Event:
    """Return an event that SIGINT and SIGTERM set from now on."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop
