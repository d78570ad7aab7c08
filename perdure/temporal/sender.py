"""The span from which this program sends requests, its own or that of whoever asked it to."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from perdure.events.trace_context import TRACEPARENT

_SENDER: ContextVar[str | None] = ContextVar("sender", default=None)


@contextmanager
def sent_from(traceparent: str | None) -> Iterator[None]:
    """Let requests inside say that they were sent from this span.

    What is no `traceparent` counts as none, as the specification wants it.
    """
    valid = traceparent is not None and TRACEPARENT.fullmatch(traceparent)
    token = _SENDER.set(traceparent if valid else None)
    try:
        yield
    finally:
        _SENDER.reset(token)


def find_traceparent() -> str | None:
    """Return the span from which a request is sent: that of `sent_from`, or the program's own.

    A program that has a current span has imported OpenTelemetry, which is not imported here.
    """
    if (sender := _SENDER.get()) is not None:
        return sender
    if (trace := sys.modules.get("opentelemetry.trace")) is None:
        return None
    context = trace.get_current_span().get_span_context()
    if not context.is_valid:
        return None
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
