"""A collector that takes OTLP over HTTP, and keeps what it was sent."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from aiohttp import web
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Collector:
    """The spans and metrics that were sent, and the bodies that held them."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.metrics: dict[str, Any] = {}
        self.bodies: list[bytes] = []
        self.resources: list[dict[str, Any]] = []
        self.url = ""

    @property
    def environment(self) -> dict[str, str]:
        """The variables that make a process send everything here, soon."""
        return {
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.url,
            "OTEL_BSP_SCHEDULE_DELAY": "100",
            "OTEL_METRIC_EXPORT_INTERVAL": "200",
        }

    async def take_traces(self, request: web.Request) -> web.Response:
        export = ExportTraceServiceRequest.FromString(await self._read(request))
        for resource in export.resource_spans:
            self.resources.append(attributes_of(resource.resource))
            for scope in resource.scope_spans:
                self.spans += scope.spans
        return web.Response(body=ExportTraceServiceResponse().SerializeToString())

    async def take_metrics(self, request: web.Request) -> web.Response:
        export = ExportMetricsServiceRequest.FromString(await self._read(request))
        for resource in export.resource_metrics:
            self.resources.append(attributes_of(resource.resource))
            for scope in resource.scope_metrics:
                self.metrics |= {metric.name: metric for metric in scope.metrics}
        return web.Response(body=ExportMetricsServiceResponse().SerializeToString())

    async def _read(self, request: web.Request) -> bytes:
        body = await request.read()
        self.bodies.append(body)
        return body

    async def wait(self, condition: Callable[[], bool], seconds: float = 30.0) -> None:
        """Wait until what was sent meets a condition. Raises TimeoutError."""
        async with asyncio.timeout(seconds):
            while not condition():
                await asyncio.sleep(0.05)

    async def turns(self, count: int) -> None:
        """Wait until the spans of so many turns are here."""
        await self.wait(lambda: len(self.named("invoke_agent")) >= count)

    def named(self, beginning: str) -> list[Span]:
        return [span for span in self.spans if span.name.startswith(beginning)]

    def distinct(self) -> dict[tuple[bytes, bytes], Span]:
        """The spans by their ids: a collector keeps one of those that have the same."""
        return {(span.trace_id, span.span_id): span for span in self.spans}


def attributes_of(holder: Any) -> dict[str, Any]:
    """Return the attributes of a span, a resource or a point as Python values."""
    return {pair.key: _value_of(pair.value) for pair in holder.attributes}


def _value_of(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value_of(part) for part in value.array_value.values]
    return getattr(value, kind)


@contextlib.asynccontextmanager
async def run_collector(port: int = 0) -> AsyncIterator[Collector]:
    collector = Collector()
    app = web.Application(client_max_size=2**26)
    app.router.add_post("/v1/traces", collector.take_traces)
    app.router.add_post("/v1/metrics", collector.take_metrics)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port)
    await site.start()
    collector.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield collector
    finally:
        await runner.cleanup()
