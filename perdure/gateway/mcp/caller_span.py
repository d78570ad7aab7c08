"""The span of whoever calls a tool of ours: it comes with the call, and not with its request."""

from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

from perdure.events.trace_context import TRACEPARENT
from perdure.temporal.names import TRACE_HEADER
from perdure.temporal.sender import sent_from


async def link_to_caller(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Handle a call, of whose span the protocol wants that `_meta` tells it.

    One HTTP request may have several calls: its own span is the sender of those that name none.
    """
    traceparent = (ctx.meta or {}).get(TRACE_HEADER)
    if not isinstance(traceparent, str) or not TRACEPARENT.fullmatch(traceparent):
        return await call_next(ctx)
    with sent_from(traceparent):
        return await call_next(ctx)
