"""The sender's span of a request to a workflow, by W3C Trace Context: `traceparent`.

It travels in a header; a message is recorded with it, so that the trace of its turn can be linked
to the sender's even after the loss of Temporal.
"""

from collections.abc import Mapping

from perdure.temporal.header_sender import HeaderSender
from perdure.temporal.names import TRACE_HEADER
from perdure.temporal.sender import find_traceparent


def make_trace_sender() -> HeaderSender:
    """Make the interceptor that sends the current span along with each request."""
    return HeaderSender(_find_headers)


def _find_headers() -> Mapping[str, str]:
    traceparent = find_traceparent()
    return {} if traceparent is None else {TRACE_HEADER: traceparent}
