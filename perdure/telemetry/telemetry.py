"""The telemetry of a process, as its environment asks for it."""

import contextlib
import ctypes
import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from temporalio.client import Client
from temporalio.runtime import Runtime
from temporalio.worker import Interceptor

from perdure.errors import Invalid
from perdure.models.model import Model
from perdure.storage.store import Store
from perdure.telemetry.gauges import Gauges
from perdure.telemetry.metrics import Metrics, build_runtime
from perdure.telemetry.observed import ObservedModel, ObservedStore
from perdure.telemetry.options import TelemetryOptions
from perdure.telemetry.outage import Outage
from perdure.telemetry.steps import FindMask, OpenLog, StepObserver
from perdure.telemetry.turns import TurnMarker

if TYPE_CHECKING:
    from perdure.telemetry.exporter import SpanSender


logger = logging.getLogger("perdure.worker.telemetry")

MISSING = "that needs `pip install 'perdure[otel]'`."


@dataclass(frozen=True)
class Telemetry:
    """The telemetry of a process: spans go by `sender`, metrics by the meter of `runtime`."""

    options: TelemetryOptions
    sender: "SpanSender | None"
    runtime: Runtime | None
    metrics: Metrics

    def observe_model(self, model: Model) -> Model:
        return ObservedModel(model, self.metrics.record_call)

    def observe_store(self, store: Store) -> Store:
        self.metrics.count_retries(store)
        return ObservedStore(store, self.metrics.record_append)

    def interceptors(self, open_log: OpenLog, find_mask: FindMask) -> Sequence[Interceptor]:
        """Return what makes the spans and metrics of a worker's steps."""
        finds = find_mask if self.options.content else None
        return TurnMarker(), StepObserver(open_log, self.sender, self.metrics, finds)

    @contextlib.asynccontextmanager
    async def count(self, client: Client, task_queue: str) -> AsyncIterator[None]:
        """Count conversations and samples of batches while inside, if metrics are exported."""
        if self.runtime is None:
            yield
            return
        async with Gauges(client, task_queue, self.metrics).watch():
            yield

    def close(self) -> None:
        """Send what is left of the spans."""
        if self.sender is not None:
            self.sender.close()


def start_telemetry(options: TelemetryOptions, *, quiet: bool = False) -> Telemetry:
    """Start what the options ask for. Raises Invalid."""
    outage = Outage()
    sender = _make_sender(outage) if options.traces else None
    if options.otlp_metrics is None and options.prometheus is None:
        return Telemetry(options, sender, None, Metrics())
    try:
        runtime = build_runtime(options, outage, quiet=quiet)
    except (RuntimeError, ValueError) as error:
        where = options.prometheus or (options.otlp_metrics and options.otlp_metrics.url)
        raise Invalid(f"Metrics cannot be exported at {where}: {error}.") from error
    # As in `temporal/connect.py`: nothing may drop a runtime, which would wait for its threads.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(runtime))
    return Telemetry(
        options,
        sender,
        runtime,
        Metrics(runtime.metric_meter, for_prometheus=options.prometheus is not None),
    )


def _make_sender(outage: Outage) -> "SpanSender | None":
    """Make what sends spans; None without its library, as variables may be those of all programs.

    The work goes on without spans.
    """
    try:
        from perdure.telemetry.exporter import SpanSender  # an optional library
    except ImportError:
        logger.warning("No traces are sent: OTEL_* ask for them, and %s", MISSING)
        return None
    return SpanSender(outage)
