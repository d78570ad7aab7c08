"""Requests whose connection Temporal had closed."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import PollWorkflowTaskQueueRequest
from temporalio.client import Client
from temporalio.service import ConnectConfig, RPCError, RPCStatusCode, ServiceClient

from perdure.client.description import describe_workflow
from perdure.embedded.temporal import TemporalServer
from perdure.errors import Unreachable
from perdure.temporal.closed_connections import CLOSED, MAX_ATTEMPTS, ReconnectingService
from perdure.temporal.connect import connect
from perdure.temporal.service_wrapper import ServiceWrapper

CLOSED_ERROR = RPCError(CLOSED[1], CLOSED[0], b"")


class FailingService(ServiceWrapper):
    """A service whose requests fail in turn with `errors`, and succeed after them."""

    def __init__(self, *errors: RPCError) -> None:
        ServiceClient.__init__(self, ConnectConfig(target_host="127.0.0.1:1"))
        self.errors = list(errors)
        self.requests = 0

    async def _rpc_call(self, *_: Any, **__: Any) -> Any:
        self.requests += 1
        if self.errors:
            raise self.errors.pop(0)
        return "answer"


async def test_a_request_whose_connection_was_closed_is_sent_again() -> None:
    service = FailingService(CLOSED_ERROR)
    assert await ReconnectingService(service)._rpc_call("describe", None, dict) == "answer"
    assert service.requests == 2


@pytest.mark.parametrize(
    ("errors", "requests"),
    [
        ([CLOSED_ERROR] * MAX_ATTEMPTS, MAX_ATTEMPTS),
        ([RPCError("not found", RPCStatusCode.NOT_FOUND, b"")], 1),
        ([RPCError("Cancelled by caller", RPCStatusCode.CANCELLED, b"")], 1),
    ],
)
async def test_another_failure_is_raised(errors: list[RPCError], requests: int) -> None:
    service, last = FailingService(*errors), errors[-1]
    with pytest.raises(RPCError) as raised:
        await ReconnectingService(service)._rpc_call("describe", None, dict)
    assert raised.value is last
    assert service.requests == requests


@contextlib.asynccontextmanager
async def poll(client: Client) -> AsyncIterator[None]:
    """Wait for a task all the time, as workers do: that keeps a closed connection in use."""

    async def repeat() -> None:
        request = PollWorkflowTaskQueueRequest(
            namespace="default", task_queue=TaskQueue(name="nobody"), identity="poller"
        )
        while True:
            with contextlib.suppress(RPCError):
                await client.workflow_service.poll_workflow_task_queue(request)

    polling = asyncio.create_task(repeat())
    try:
        yield
    finally:
        polling.cancel()


async def count_failures(client: Client) -> int:
    """Describe a workflow for some lives of a connection; count the requests that fail."""
    failures = 0
    async with poll(client):
        for _ in range(60):
            try:
                await describe_workflow(client, "nothing")
            except Unreachable:
                failures += 1
            await asyncio.sleep(0.2)
    return failures


@pytest.mark.long
async def test_no_request_fails_as_temporal_closes_connections(tmp_path: Path) -> None:
    setting = 'frontend.keepAliveMaxConnectionAge="1s"'
    server = await TemporalServer.prepare(
        tmp_path, ui=False, options=("--dynamic-config-value", setting)
    )
    await server.launch()
    try:
        plain = await Client.connect(server.address)
        failures = await asyncio.gather(
            count_failures(plain), count_failures(await connect(server.address))
        )
    finally:
        await server.stop()
    assert failures[0] > 0, "the SDK has mended it: closed_connections.py may go"
    assert failures[1] == 0
