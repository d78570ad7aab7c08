"""Sending of spans by OpenTelemetry's SDK, which is imported here and nowhere else.

The SDK reads OTEL_* itself: endpoints, headers, the service's name, the sampler, limits, batches.
"""

import logging
import threading
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.metadata import version
from typing import Any

from opentelemetry.attributes import BoundedAttributes
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from perdure.telemetry.identity import SpanPlace
from perdure.telemetry.names import ERROR_TYPE, SCHEMA_URL
from perdure.telemetry.outage import Outage
from perdure.telemetry.spans import Span

SDK_LOGGERS = ("opentelemetry.exporter", "opentelemetry.sdk")
"""The SDK logs each try of an export that fails, with a traceback."""

MAX_TRACES = 1_000
"""Traces whose sampling is remembered."""

CLOSE_TIMEOUT = 3.0
"""Seconds for the last spans of a process that ends."""

KINDS = {
    "internal": SpanKind.INTERNAL,
    "client": SpanKind.CLIENT,
    "server": SpanKind.SERVER,
}

UNSET = Status(StatusCode.UNSET)


class SpanSender:
    """Sends spans in batches, from a thread of its own: whoever hands one in never waits."""

    def __init__(self, outage: Outage) -> None:
        for name in SDK_LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self.is_sampled = lru_cache(MAX_TRACES)(self._decide)
        self._resource = Resource.create(
            {SERVICE_NAME: "perdure", SERVICE_VERSION: version("perdure")}
        ).merge(Resource.create())
        self._scope = InstrumentationScope("perdure", version("perdure"), SCHEMA_URL)
        self._limits = SpanLimits()
        self._provider = TracerProvider(resource=self._resource)
        self._batches = BatchSpanProcessor(_FrugalExporter(OTLPSpanExporter(), outage))
        self._provider.add_span_processor(self._batches)

    def send(self, span: Span) -> None:
        """Hand in a span that has ended; it is sent soon, if its trace is sampled."""
        if span.kind == "server":  # decided as the request came, for its trace may be another's
            is_sampled = span.place.is_sampled
        else:
            is_sampled = self.is_sampled(span.place.trace_id)
        if is_sampled:
            self._batches.on_end(self._finish(span))

    def _finish(self, span: Span) -> ReadableSpan:
        """Return a span as the SDK has it at its end.

        A tracer would make it in four times the CPU: it draws ids, asks the sampler, and checks
        and copies attributes, as for a span that somebody fills in while it goes on.
        """
        error = {} if span.error is None else {ERROR_TYPE: span.error}
        status = UNSET if span.error is None else Status(StatusCode.ERROR, span.error)
        return ReadableSpan(
            span.name,
            context=_to_context(span.place),
            parent=None if span.parent is None else _to_context(span.parent),
            resource=self._resource,
            attributes=self._limit({**span.attributes, **error}),
            links=(Link(_to_context(span.link)),) if span.link else (),
            kind=KINDS[span.kind],
            status=status,
            start_time=span.begin,
            end_time=span.end,
            instrumentation_scope=self._scope,
        )

    def _limit(self, attributes: dict[str, Any]) -> Mapping[str, Any]:
        """Return the attributes as far as the limits of OTEL_* let them."""
        most, length = self._limits.max_span_attributes, self._limits.max_span_attribute_length
        if length is None and (most is None or len(attributes) <= most):
            return attributes
        return BoundedAttributes(most, attributes, max_value_len=length)

    def close(self) -> None:
        """Send what is left, and end the thread; a collector that is down is not waited for."""
        closing = threading.Thread(target=self._provider.shutdown, daemon=True)
        closing.start()
        closing.join(CLOSE_TIMEOUT)

    def _decide(self, trace_id: int) -> bool:
        decision = self._provider.sampler.should_sample(None, trace_id, "").decision
        return decision is Decision.RECORD_AND_SAMPLE

    def is_request_sampled(self, trace_id: int, parent: SpanPlace | None) -> bool:
        """Tell whether the span of a request is sampled, which others may have decided."""
        sampler = self._provider.sampler
        decision = sampler.should_sample(_context_under(parent), trace_id, "").decision
        return decision is Decision.RECORD_AND_SAMPLE


def _context_under(parent: SpanPlace | None) -> Context:
    if parent is None:
        return Context()
    return set_span_in_context(NonRecordingSpan(_to_context(parent)), Context())


def _to_context(place: SpanPlace) -> SpanContext:
    return SpanContext(
        place.trace_id, place.span_id, is_remote=True, trace_flags=TraceFlags(place.is_sampled)
    )


class _FrugalExporter(SpanExporter):
    """An exporter whose failures are an outage of the collector."""

    def __init__(self, exporter: SpanExporter, outage: Outage) -> None:
        self._exporter, self._outage = exporter, outage

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._exporter.export(spans)
        if result is SpanExportResult.SUCCESS:
            self._outage.note_success("spans")
        else:
            self._outage.note_failure("spans")
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)
