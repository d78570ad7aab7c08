"""The metrics of models, steps, turns and storage.

They are Temporal's own meter's: its SDK's metrics and ours leave a process by one exporter, in
Rust, and no other library is loaded for them.
"""

import contextlib
import logging
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal, NamedTuple, TypeAlias

from temporalio.common import MetricMeter
from temporalio.runtime import (
    LogForwardingConfig,
    LoggingConfig,
    OpenTelemetryConfig,
    OpenTelemetryMetricTemporality,
    PrometheusConfig,
    Runtime,
    TelemetryConfig,
    TelemetryFilter,
)

from perdure.events.entry import Entry
from perdure.events.usage import Usage
from perdure.storage.store import RetryingStore, Store
from perdure.telemetry import names
from perdure.telemetry.options import OtlpMetrics, TelemetryOptions
from perdure.telemetry.outage import Outage, OutageFilter
from perdure.telemetry.record import Append, ModelCall
from perdure.telemetry.spans import find_provider, model_label, moment_of
from perdure.telemetry.turns import EndedTurn

SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
"""The boundaries that the conventions want for durations of requests."""
TOKENS = tuple(float(4**power) for power in range(14))
MINUTES = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0, 1800.0, 3600.0, 14400.0, 86400.0)
APPENDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
DOLLARS = (0.0001, 0.001, 0.01, 0.1, 1.0, 10.0)

BUCKETS: Mapping[str, Sequence[float]] = {
    names.TOKEN_USAGE: TOKENS,
    names.OPERATION_DURATION: SECONDS,
    names.OPERATION_FIRST_CHUNK: SECONDS,
    names.TURN_DURATION: MINUTES,
    names.APPEND_DURATION: APPENDS,
    names.MODEL_COST: DOLLARS,
    names.STREAM_LAG: APPENDS,
}

Labels: TypeAlias = Mapping[str, str]


class Kind(NamedTuple):
    """The kind of a metric, what it says, and its unit."""

    kind: Literal["counter", "histogram", "histogram_float", "gauge"]
    description: str
    unit: str | None = None


KINDS: Mapping[str, Kind] = {
    names.TOKEN_USAGE: Kind("histogram", "Tokens of a request.", "{token}"),
    names.OPERATION_DURATION: Kind(
        "histogram_float", "Duration of a request to a model, or of a call of a tool.", "s"
    ),
    names.OPERATION_FIRST_CHUNK: Kind(
        "histogram_float", "Time from a request to the first of its answer.", "s"
    ),
    names.MODEL_COST: Kind("histogram_float", "Cost of a request.", "USD"),
    names.TURN_DURATION: Kind("histogram_float", "Duration of a turn.", "s"),
    names.APPEND_DURATION: Kind("histogram_float", "Duration of the writing of an event.", "s"),
    names.STREAM_LAG: Kind(
        "histogram_float", "Time from an event to its sending to whoever follows.", "s"
    ),
    names.STORAGE_RETRIES: Kind("counter", "Requests to the store that were repeated."),
    names.STEP_RETRIES: Kind("counter", "Attempts after the first one."),
    names.STEPS_RECOVERED: Kind("counter", "Steps whose result an earlier attempt had recorded."),
    names.CONVERSATIONS: Kind("gauge", "Conversations that are open, by status."),
    names.APPROVALS_WAITING: Kind("gauge", "Conversations that wait for an approval."),
    names.BATCH_SAMPLES: Kind("gauge", "Samples of a batch that runs, by state."),
}


def build_runtime(options: TelemetryOptions, outage: Outage, *, quiet: bool = False) -> Runtime:
    """Build the runtime of a process that exports metrics. Raises ValueError for a bad address."""
    logger = logging.getLogger("perdure.worker.temporal")
    logger.addFilter(OutageFilter(outage))
    level = "ERROR" if quiet else "WARN"
    only = TelemetryFilter(core_level=level, other_level="ERROR")
    if options.prometheus is not None:
        metrics: PrometheusConfig | OpenTelemetryConfig = _prometheus_config(options.prometheus)
        tags = {}  # Prometheus names what it asks
    else:
        assert options.otlp_metrics is not None, "metrics are offered, or sent"
        metrics, tags = _otlp_config(options.otlp_metrics), {"service.name": options.service}
    return Runtime(
        telemetry=TelemetryConfig(
            logging=LoggingConfig(only, forwarding=LogForwardingConfig(logger=logger)),
            metrics=metrics,
            global_tags=tags,
            attach_service_name=False,
        )
    )


def _prometheus_config(address: str) -> PrometheusConfig:
    buckets = {_to_prometheus(name): boundaries for name, boundaries in BUCKETS.items()}
    return PrometheusConfig(
        bind_address=address, durations_as_seconds=True, histogram_bucket_overrides=buckets
    )


def _otlp_config(otlp: OtlpMetrics) -> OpenTelemetryConfig:
    temporality = OpenTelemetryMetricTemporality
    return OpenTelemetryConfig(
        url=otlp.url,
        headers=otlp.headers,
        metric_periodicity=timedelta(seconds=otlp.interval),
        metric_temporality=temporality.DELTA if otlp.delta else temporality.CUMULATIVE,
        durations_as_seconds=True,
        http=True,
        histogram_bucket_overrides=BUCKETS,
    )


def _to_prometheus(name: str) -> str:
    """Return a name that Prometheus takes: the SDK drops metrics with dots without a word."""
    return name.replace(".", "_")


class Metrics:
    """The metrics of a process; those of a meter that exports nothing cost nothing."""

    def __init__(
        self, meter: MetricMeter = MetricMeter.noop, *, for_prometheus: bool = False
    ) -> None:
        self._meter = meter
        self._translate = _to_prometheus if for_prometheus else str
        self._instruments: dict[str, Any] = {}

    def record_call(self, call: ModelCall) -> None:
        """Record a request to a model: its duration, tokens and cost."""
        model = call.completion.usage.model if call.completion else ""
        model = model or call.request.model.name
        labels = {
            names.OPERATION: names.CHAT,
            names.REQUEST_MODEL: model_label(model),
            names.PROVIDER: find_provider(model),
        }
        if call.request.purpose:
            labels[names.PURPOSE] = call.request.purpose
        error = {names.ERROR_TYPE: call.error} if call.error else {}
        self.record(names.OPERATION_DURATION, (call.end - call.begin) / 1e9, labels | error)
        if call.first_text is not None:
            waited = (call.first_text - call.begin) / 1e9
            self.record(names.OPERATION_FIRST_CHUNK, waited, labels)
        if call.completion is not None:
            self._record_usage(call.completion.usage, labels)

    def _record_usage(self, usage: Usage, labels: Labels) -> None:
        for kind, tokens in (("input", usage.prompt_tokens), ("output", usage.completion_tokens)):
            self.record(names.TOKEN_USAGE, tokens, {**labels, names.TOKEN_TYPE: kind})
        if usage.known_cost is not None:
            self.record(names.MODEL_COST, usage.known_cost, labels)

    def record_tool(self, name: str, seconds: float, error: str | None) -> None:
        labels = {names.OPERATION: names.EXECUTE_TOOL, names.TOOL_NAME: name}
        failed = {names.ERROR_TYPE: error} if error else {}
        self.record(names.OPERATION_DURATION, seconds, labels | failed)

    def record_turn(self, ended: EndedTurn, seconds: float) -> None:
        labels = {names.STATUS: ended.status, names.REQUEST_MODEL: model_label(ended.model)}
        self.record(names.TURN_DURATION, seconds, labels)

    def record_append(self, append: Append) -> None:
        failed = {names.ERROR_TYPE: append.error} if append.error else {}
        self.record(names.APPEND_DURATION, (append.end - append.begin) / 1e9, failed)

    def count_retries(self, store: Store) -> None:
        """Count the requests that a store repeats, if it does."""
        if isinstance(store, RetryingStore):
            retries = names.STORAGE_RETRIES
            store.on_retry = lambda failure: self.count(retries, {names.ERROR_TYPE: failure})

    def record_lag(self, entry: Entry) -> None:
        """Record how long after its writing an event is sent to whoever follows."""
        with contextlib.suppress(ValueError):  # of an event that a newer version wrote
            lag = time.time_ns() - moment_of(entry.event.timestamp)
            self.record(names.STREAM_LAG, max(0, lag) / 1e9)

    def count(self, name: str, labels: Labels) -> None:
        """Count one more."""
        self._instrument(name).add(1, self._labels(labels))

    def set(self, name: str, value: int, labels: Labels) -> None:
        """Set a gauge."""
        self._instrument(name).set(value, self._labels(labels))

    def record(self, name: str, value: float, labels: Labels | None = None) -> None:
        """Record a value of a histogram."""
        self._instrument(name).record(value, self._labels(labels or {}))

    def _instrument(self, name: str) -> Any:
        if (instrument := self._instruments.get(name)) is None:
            kind, description, unit = KINDS[name]
            create = getattr(self._meter, f"create_{kind}")
            instrument = self._instruments[name] = create(self._translate(name), description, unit)
        return instrument

    def _labels(self, labels: Labels) -> dict[str, str]:
        return {self._translate(name): value for name, value in labels.items()}
