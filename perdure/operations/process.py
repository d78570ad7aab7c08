"""A process that runs until it is stopped: its logs, and the signals that stop it."""

import asyncio
import logging
import signal
import sys

from perdure.operations.json_logs import JsonFormatter
from perdure.settings.log_format import LogFormat

LOG_FORMAT = "%(asctime)s %(process)d %(levelname)s %(message)s"


def configure_logs(name: str = "perdure.worker", log_format: LogFormat = "auto") -> None:
    """Log warnings of all libraries, and all that the logger of a name reports.

    What is no terminal gets JSON, unless the format says otherwise.
    """
    logging.basicConfig(level=logging.WARNING, format=LOG_FORMAT)
    if log_format == "json" or (log_format == "auto" and not sys.stderr.isatty()):
        for handler in logging.getLogger().handlers:
            handler.setFormatter(JsonFormatter())
    logging.getLogger(name).setLevel(logging.INFO)


def stop_signal() -> asyncio.Event:
    """Return an event that SIGINT and SIGTERM set from now on."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop
