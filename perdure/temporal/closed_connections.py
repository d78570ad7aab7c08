"""Requests to Temporal whose connection had been closed before they were sent."""

import asyncio
from typing import Any

from temporalio.service import RPCError, RPCStatusCode

from perdure.temporal.service_wrapper import ServiceWrapper

CLOSED = (RPCStatusCode.CANCELLED, "operation was canceled")
"""Status and message of a request that the SDK's transport gave up as its connection was closed."""

MAX_ATTEMPTS = 3
"""The second one may still meet the closed connection."""

RETRY_INTERVAL = 0.01
"""Seconds in which the SDK opens another connection."""


class ReconnectingService(ServiceWrapper):
    """Requests that are sent again, on another connection, if theirs had been closed.

    Temporal closes each connection after five minutes. The SDK, while it still waits for an answer
    on it, notices that with its next request, and fails it, unless it retries that one for all
    transient errors, for ten seconds.
    """

    async def _rpc_call(self, rpc: str, req: Any, resp_type: type[Any], **options: Any) -> Any:
        for _ in range(MAX_ATTEMPTS - 1):
            try:
                return await super()._rpc_call(rpc, req, resp_type, **options)
            except RPCError as error:
                if (error.status, error.message) != CLOSED:
                    raise
            await asyncio.sleep(RETRY_INTERVAL)
        return await super()._rpc_call(rpc, req, resp_type, **options)
