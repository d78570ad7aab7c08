"""Whether the gateway lives, and whether it can work; nobody needs a key to ask."""

import asyncio

from fastapi import APIRouter, Request, Response
from temporalio.service import RPCError

from perdure.gateway.callers import find_gateway
from perdure.gateway.errors import problem_response
from perdure.gateway.gateway import Gateway
from perdure.storage.errors import StoreError

router = APIRouter(tags=["health"])

READY_TIMEOUT = 5.0


@router.get("/health")
async def show_health() -> dict[str, str]:
    """Tell that the process answers."""
    return {"status": "ok"}


@router.get("/ready", response_model=dict[str, str])
async def show_readiness(request: Request) -> Response | dict[str, str]:
    """Tell whether Temporal and the store answer: a gateway without them serves little."""
    missing = await _find_missing(find_gateway(request))
    if missing is None:
        return {"status": "ready"}
    detail = f"{missing} does not answer."
    return problem_response(503, "unreachable", detail, headers={"Retry-After": "2"})


async def _find_missing(gateway: Gateway) -> str | None:
    """Return what does not answer; None if all does."""
    try:
        async with asyncio.timeout(READY_TIMEOUT):
            await gateway.store.read("gateway/ready")
    except (StoreError, TimeoutError):
        return "The store"
    try:
        async with asyncio.timeout(READY_TIMEOUT):
            await gateway.client.temporal.service_client.check_health()
    except (RPCError, RuntimeError, TimeoutError):
        return "Temporal"
    return None
