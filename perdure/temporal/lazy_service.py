"""Requests to a Temporal server that need not answer yet."""

import asyncio
from time import monotonic
from typing import Any

from temporalio.service import RPCError, RPCStatusCode, ServiceClient

from perdure.temporal.service_wrapper import ServiceWrapper

RETRY_INTERVAL = 1.0
"""Seconds after an attempt to connect that failed, in which requests fail at once."""

CONNECT_TIMEOUT = 3.0
"""Seconds for an attempt to connect: a request must not wait for the SDK's own ones, 10 s."""


class LazyService(ServiceWrapper):
    """The requests of a client that connects with the first one, and again until it succeeds.

    Meanwhile requests fail as those to a server that does not answer: the SDK's own lazy client
    raises a RuntimeError.
    """

    def __init__(self, service: ServiceClient) -> None:
        super().__init__(service)
        self._failed: tuple[float, str] | None = None

    async def _rpc_call(self, rpc: str, req: Any, resp_type: type[Any], **options: Any) -> Any:
        if self._failed is not None and monotonic() - self._failed[0] < RETRY_INTERVAL:
            raise _unavailable(self._failed[1])
        limit = None if self._is_connected() else CONNECT_TIMEOUT
        try:
            async with asyncio.timeout(limit):
                answer = await super()._rpc_call(rpc, req, resp_type, **options)
        except (RuntimeError, TimeoutError) as error:
            if not self._is_connected():
                self._failed = monotonic(), "no server answers"
                raise _unavailable(self._failed[1]) from error
            if limit is None or not isinstance(error, TimeoutError):
                raise
            # Another request has connected while this one waited.
            raise _unavailable("the server has not answered yet") from error
        self._failed = None
        return answer

    def _is_connected(self) -> bool:
        return getattr(self._service, "_bridge_client", None) is not None


def _unavailable(message: str) -> RPCError:
    return RPCError(message, RPCStatusCode.UNAVAILABLE, b"")
