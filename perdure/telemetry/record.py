"""The record of a step: its requests to models, and the objects that it has written.

The wrappers of model and store note it here; nothing is noted outside of a step.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from perdure.agent.calls.completion import Completion
from perdure.models.model import Request
from perdure.telemetry.current import TRACE_ID
from perdure.tools.mcp.call_trace import CallTrace, tracing_call


@dataclass(frozen=True)
class ModelCall:
    """A request to a model, with moments in nanoseconds; `error` is the code of its failure."""

    request: Request
    begin: int
    first_text: int | None
    end: int
    completion: Completion | None = None
    error: str | None = None


@dataclass(frozen=True)
class Append:
    """An object of a log that was written, or was not; with moments in nanoseconds.

    `error` is the type of a failure, after which nobody knows whether it was written.
    """

    key: str
    begin: int
    end: int
    error: str | None = None


@dataclass
class StepRecord:
    """The record of one attempt at a step, which began at a moment in nanoseconds."""

    begin: int
    calls: list[ModelCall] = field(default_factory=list)
    appends: list[Append] = field(default_factory=list)
    mcp: CallTrace | None = None
    """The call at an MCP server that the step makes; empty if its tool is no server's."""


_CURRENT: ContextVar[StepRecord | None] = ContextVar("step", default=None)


def current_record() -> StepRecord | None:
    return _CURRENT.get()


@contextmanager
def recording(
    begin: int, trace_id: str | None = None, call: CallTrace | None = None
) -> Iterator[StepRecord]:
    """Record what a step of the turn with this trace does inside, in all of its tasks."""
    record = StepRecord(begin, mcp=call)
    token, trace = _CURRENT.set(record), TRACE_ID.set(trace_id)
    try:
        with tracing_call(call):
            yield record
    finally:
        _CURRENT.reset(token)
        TRACE_ID.reset(trace)
