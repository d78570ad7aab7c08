"""Requests to a server that has not answered yet."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from temporalio.service import ConnectConfig, RPCError, RPCStatusCode, ServiceClient

from perdure.temporal import lazy_service
from perdure.temporal.lazy_service import LazyService


class SilentService(ServiceClient):
    """A service that answers nothing; the first request connects it after a while."""

    def __init__(self) -> None:
        super().__init__(ConnectConfig(target_host="127.0.0.1:1"))
        self._bridge_client: object | None = None

    @property
    def worker_service_client(self) -> Any:
        raise NotImplementedError

    def update_rpc_metadata(self, metadata: Mapping[str, str | bytes]) -> None:
        raise NotImplementedError

    def update_api_key(self, api_key: str | None) -> None:
        raise NotImplementedError

    async def _rpc_call(self, *_: Any, **options: Any) -> Any:
        if options.get("connects"):
            await asyncio.sleep(0.05)
            self._bridge_client = object()
        await asyncio.Event().wait()


@pytest.mark.parametrize("connects", [False, True])
async def test_a_request_that_waits_for_a_connection_fails_as_one_to_a_server_that_is_away(
    monkeypatch: pytest.MonkeyPatch, connects: bool
) -> None:
    monkeypatch.setattr(lazy_service, "CONNECT_TIMEOUT", 0.2)
    service = LazyService(SilentService())
    with pytest.raises(RPCError) as raised:
        await service._rpc_call("describe", None, dict, connects=connects)
    assert raised.value.status is RPCStatusCode.UNAVAILABLE
