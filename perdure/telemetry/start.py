"""The start of what a process exports; one that exports nothing loads no more than this module."""

import gc
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perdure.telemetry.telemetry import Telemetry


def start_configured_telemetry(
    metrics_address: str | None, *, quiet: bool = False
) -> "Telemetry | None":
    """Start what OTEL_* and a setting ask for; None if that is nothing.

    A `quiet` process logs no warnings of Temporal's SDK. Raises Invalid.
    """
    if metrics_address is None and not any(name.startswith("OTEL_") for name in os.environ):
        return None
    from perdure.telemetry.options import read_options  # only for those who export
    from perdure.telemetry.telemetry import start_telemetry

    options = read_options(metrics_address)
    if options.is_off():
        return None
    telemetry = start_telemetry(options, quiet=quiet)
    gc.freeze()  # as in `worker.py`: what was loaded stays, and no collection need visit it
    return telemetry
