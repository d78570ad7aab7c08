"""An MCP server that makes spans of its own, by its library: `python traced_mcp_server.py`.

It sends them where `OTEL_EXPORTER_OTLP_ENDPOINT` says.
"""

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from tests.mcp_server import make


def main() -> None:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    make().run("stdio")


if __name__ == "__main__":
    main()
