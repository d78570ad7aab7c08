"""A client of Temporal's services that passes its requests to another one."""

from collections.abc import Mapping
from typing import Any

from temporalio.service import ServiceClient


class ServiceWrapper(ServiceClient):
    """The requests of another client, for subclasses that change what happens with them."""

    def __init__(self, service: ServiceClient) -> None:
        super().__init__(service.config)
        self._service = service

    @property
    def worker_service_client(self) -> Any:
        return self._service.worker_service_client

    def update_rpc_metadata(self, metadata: Mapping[str, str | bytes]) -> None:
        self._service.update_rpc_metadata(metadata)

    def update_api_key(self, api_key: str | None) -> None:
        self._service.update_api_key(api_key)

    async def _rpc_call(self, rpc: str, req: Any, resp_type: type[Any], **options: Any) -> Any:
        return await self._service._rpc_call(rpc, req, resp_type, **options)
