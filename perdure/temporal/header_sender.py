"""An interceptor that adds headers to what starts a workflow, or tells it something."""

from collections.abc import Callable, Mapping
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.client import (
    Interceptor,
    OutboundInterceptor,
    SignalWorkflowInput,
    StartWorkflowInput,
    StartWorkflowUpdateWithStartInput,
    WorkflowHandle,
    WorkflowUpdateHandle,
)
from temporalio.converter import DefaultPayloadConverter

FindHeaders = Callable[[], Mapping[str, str]]
"""Finds the headers of a request, by their names."""


class HeaderSender(Interceptor):
    """Sends headers, which older workflows ignore: an argument would fail their workflow tasks."""

    def __init__(self, find_headers: FindHeaders) -> None:
        self._find_headers = find_headers

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:
        return _HeaderOutbound(next, self._find_headers)


class _HeaderOutbound(OutboundInterceptor):
    def __init__(self, following: OutboundInterceptor, find_headers: FindHeaders) -> None:
        super().__init__(following)
        self._find_headers = find_headers

    def _mark(self, headers: Mapping[str, Payload]) -> Mapping[str, Payload]:
        if not (more := self._find_headers()):
            return headers
        convert = DefaultPayloadConverter().to_payload
        return {**headers, **{name: convert(value) for name, value in more.items()}}

    async def start_workflow(self, input: StartWorkflowInput) -> WorkflowHandle[Any, Any]:
        input.headers = self._mark(input.headers)
        return await super().start_workflow(input)

    async def signal_workflow(self, input: SignalWorkflowInput) -> None:
        input.headers = self._mark(input.headers)
        await super().signal_workflow(input)

    async def start_update_with_start_workflow(
        self, input: StartWorkflowUpdateWithStartInput
    ) -> WorkflowUpdateHandle[Any]:
        update = input.update_workflow_input
        update.headers = self._mark(update.headers)
        return await super().start_update_with_start_workflow(input)
