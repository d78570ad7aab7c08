"""The outage of a collector, which is told once, and not at every try of an export."""

import logging
import threading
from time import monotonic

logger = logging.getLogger("perdure.worker.telemetry")

FORGETTING = 300.0
"""Seconds without a failure after which the next one is told again: no try is longer delayed."""

METRIC_EXPORT = "metric_export"
"""The end of the name under which Temporal's SDK logs that metrics were not taken."""


class Outage:
    """The exports that have failed lately: of spans, of metrics, or of both."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._failed_at: dict[str, float] = {}

    def note_failure(self, kind: str) -> None:
        """Tell that nobody takes what is exported, unless that was told lately."""
        with self._lock:
            now = monotonic()
            is_told = any(now - failed_at < FORGETTING for failed_at in self._failed_at.values())
            self._failed_at[kind] = now
        if not is_told:
            logger.warning(
                "The collector of OTEL_EXPORTER_OTLP_ENDPOINT does not take %s: what is not sent "
                "is lost, and the work goes on.",
                kind,
            )

    def note_success(self, kind: str) -> None:
        """Tell that what failed is taken again."""
        with self._lock:
            was_down = self._failed_at.pop(kind, None) is not None
        if was_down:
            logger.warning("The collector takes %s again.", kind)


class OutageFilter(logging.Filter):
    """Takes the lines of Temporal's SDK on metrics that were not taken for an outage."""

    def __init__(self, outage: Outage) -> None:
        super().__init__()
        self._outage = outage

    def filter(self, record: logging.LogRecord) -> bool:
        if not record.name.endswith(METRIC_EXPORT):
            return True
        self._outage.note_failure("metrics")
        return False
