"""The options of telemetry, from OpenTelemetry's own variables and the setting `metrics_address`.

No library is imported here: a process that exports nothing loads none.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

from perdure.errors import Invalid
from perdure.telemetry.names import (
    CAPTURE_CONTENT_VARIABLE,
    ENDPOINT_VARIABLE,
    METRICS_ENDPOINT_VARIABLE,
    TRACES_ENDPOINT_VARIABLE,
)

DEFAULT_ENDPOINT = "http://localhost:4318"
DEFAULT_INTERVAL = 60.0
PROTOCOL = "http/protobuf"
TRUE = ("true", "1")


@dataclass(frozen=True)
class OtlpMetrics:
    """The collector of metrics; `interval` is the seconds between two exports."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    interval: float = DEFAULT_INTERVAL
    delta: bool = False


@dataclass(frozen=True)
class TelemetryOptions:
    """The exports of a process, by default none; `prometheus` is an address, `HOST:PORT`."""

    traces: bool = False
    content: bool = False
    """Whether spans have what was said, and not only where it is."""
    otlp_metrics: OtlpMetrics | None = None
    prometheus: str | None = None
    service: str = "perdure"

    def is_off(self) -> bool:
        return not self.traces and self.otlp_metrics is None and self.prometheus is None


def read_options(
    prometheus: str | None = None, environment: Mapping[str, str] = os.environ
) -> TelemetryOptions:
    """Read what OTEL_* ask for. Raises Invalid for what is not exported here."""
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return TelemetryOptions(prometheus=prometheus)
    traces = _is_exported(environment, "TRACES", TRACES_ENDPOINT_VARIABLE)
    metrics = _is_exported(environment, "METRICS", METRICS_ENDPOINT_VARIABLE)
    return TelemetryOptions(
        traces=traces,
        content=environment.get(CAPTURE_CONTENT_VARIABLE, "").lower() in TRUE,
        otlp_metrics=_read_metrics(environment) if metrics and prometheus is None else None,
        prometheus=prometheus,
        service=environment.get("OTEL_SERVICE_NAME") or "perdure",
    )


def _is_exported(environment: Mapping[str, str], signal: str, endpoint: str) -> bool:
    """Tell whether a signal is exported: where there is an endpoint, or an exporter is named."""
    exporter = environment.get(f"OTEL_{signal}_EXPORTER", "")
    if exporter not in ("", "otlp", "none"):
        raise Invalid(f"OTEL_{signal}_EXPORTER={exporter} is not served: write otlp or none.")
    has_endpoint = environment.get(ENDPOINT_VARIABLE) or environment.get(endpoint)
    if exporter == "none" or not (exporter or has_endpoint):
        return False
    for name in (f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        if environment.get(name, PROTOCOL) != PROTOCOL:
            raise Invalid(f"{name}={environment[name]} is not served: write {PROTOCOL}.")
    return True


def _read_metrics(environment: Mapping[str, str]) -> OtlpMetrics:
    general = environment.get(ENDPOINT_VARIABLE) or DEFAULT_ENDPOINT
    url = environment.get(METRICS_ENDPOINT_VARIABLE) or f"{general.rstrip('/')}/v1/metrics"
    headers = environment.get("OTEL_EXPORTER_OTLP_METRICS_HEADERS") or environment.get(
        "OTEL_EXPORTER_OTLP_HEADERS", ""
    )
    preference = environment.get("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "")
    return OtlpMetrics(
        url, _parse_headers(headers), _read_interval(environment), preference.lower() == "delta"
    )


def _read_interval(environment: Mapping[str, str]) -> float:
    text = environment.get("OTEL_METRIC_EXPORT_INTERVAL", "")
    if not text:
        return DEFAULT_INTERVAL
    if not text.isdecimal() or int(text) == 0:
        raise Invalid(f"OTEL_METRIC_EXPORT_INTERVAL={text} is no number of milliseconds.")
    return int(text) / 1000


def _parse_headers(text: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in text.split(",") if "=" in part)
    return {unquote(name).strip().lower(): unquote(value).strip() for name, _, value in pairs}
