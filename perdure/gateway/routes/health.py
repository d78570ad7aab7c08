"""Whether the gateway lives, and whether it can work; nobody needs a key to ask."""

from fastapi import APIRouter, Request, Response

from perdure.gateway.callers import find_gateway
from perdure.gateway.errors import problem_response
from perdure.operations.worker.readiness import find_missing

router = APIRouter(tags=["health"])


@router.get("/health")
async def show_health() -> dict[str, str]:
    """Tell that the process answers."""
    return {"status": "ok"}


@router.get("/ready", response_model=dict[str, str])
async def show_readiness(request: Request) -> Response | dict[str, str]:
    """Tell whether Temporal and the store answer: a gateway without them serves little."""
    gateway = find_gateway(request)
    missing = await find_missing(gateway.store, gateway.client.temporal)
    if missing is None:
        return {"status": "ready"}
    detail = f"{missing} does not answer."
    return problem_response(503, "unreachable", detail, headers={"Retry-After": "2"})
