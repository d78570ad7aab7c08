"""The sender of spans, as those see it who make them."""

from typing import Protocol

from perdure.telemetry.identity import SpanPlace
from perdure.telemetry.spans import Span


class Sender(Protocol):
    """Sends the spans of traces that are sampled, and drops others."""

    def send(self, span: Span) -> None:
        """Hand in a span that has ended; nothing is waited for."""

    def is_sampled(self, trace_id: int, /) -> bool:
        """Tell whether a trace that begins here is sampled."""
        ...

    def is_request_sampled(self, trace_id: int, parent: SpanPlace | None) -> bool:
        """Tell whether the span of a request is, which others may have begun the trace of."""
        ...
