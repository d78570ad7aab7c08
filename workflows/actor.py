"""The user of a request to a conversation, and the span it was sent from, as its headers say."""

from collections.abc import Mapping
from typing import Any

from temporalio import workflow
from temporalio.api.common.v1 import Payload
from temporalio.worker import (
    HandleSignalInput,
    HandleUpdateInput,
    Interceptor,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
)

from perdure.events.trace_context import TRACEPARENT
from perdure.temporal.names import ACTOR_HEADER, TRACE_HEADER

MAX_ACTOR_CHARS = 256
"""Characters of a name that are kept: anybody who may signal can send one."""


class ActorReader(Interceptor):
    """Tells a workflow who sent the request that it is about to handle, and from which span."""

    def workflow_interceptor_class(
        self,
        input: WorkflowInterceptorClassInput,  # noqa: ARG002
    ) -> type[WorkflowInboundInterceptor]:
        return _ActorInbound


class _ActorInbound(WorkflowInboundInterceptor):
    """Sets `actor` and `traceparent` of the workflow; its handler reads them before it waits."""

    async def handle_signal(self, input: HandleSignalInput) -> None:
        _tell_actor(input.headers)
        await super().handle_signal(input)

    async def handle_update_handler(self, input: HandleUpdateInput) -> Any:
        _tell_actor(input.headers)
        return await super().handle_update_handler(input)


def _tell_actor(headers: Mapping[str, Payload]) -> None:
    instance = workflow.instance()
    if not hasattr(instance, "actor"):
        return
    header = headers.get(ACTOR_HEADER)
    instance.actor = None if header is None else _read_name(header)
    trace = headers.get(TRACE_HEADER)
    instance.traceparent = None if trace is None else _read_traceparent(trace)


def _read_traceparent(header: Payload) -> str | None:
    name = _read_name(header)
    return name if name is not None and TRACEPARENT.fullmatch(name) else None


def _read_name(header: Payload) -> str | None:
    """Read the name in a header; None for what is none, of which no conversation may fail."""
    try:
        name = workflow.payload_converter().from_payload(header)
    except (LookupError, RuntimeError, ValueError, RecursionError):
        return None
    if not isinstance(name, str):
        return None
    return name[:MAX_ACTOR_CHARS].encode(errors="replace").decode()
