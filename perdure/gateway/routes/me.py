"""Who the request comes from."""

from fastapi import APIRouter

from perdure.api.keys import Me
from perdure.gateway.callers import Reader
from perdure.gateway.identity.principal import Principal

router = APIRouter(tags=["keys"])


@router.get("/v1/me")
async def show_me(caller: Reader) -> Me:
    """Tell who the request comes from, and what it may do."""
    return describe(caller.principal)


def describe(principal: Principal) -> Me:
    return Me(
        user_id=principal.user_id,
        scopes=tuple(sorted(principal.scopes)),
        key_id=principal.key_id,
    )
