"""The trace of the step that runs, for its log lines; a process without telemetry has none."""

from contextvars import ContextVar

TRACE_ID: ContextVar[str | None] = ContextVar("trace_id", default=None)
"""The id of the trace as 32 hex digits."""
