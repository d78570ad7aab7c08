"""The API keys of a user."""

from typing import Annotated

from fastapi import APIRouter, Path, Request

from perdure.api.keys import CreatedKey, CreateKey, Keys
from perdure.errors import Forbidden, NotFound
from perdure.gateway.callers import Administrator
from perdure.gateway.edge.audit import audit
from perdure.storage.credentials.api_keys import (
    create_api_key,
    find_api_key,
    list_api_keys,
    revoke_api_key,
)

router = APIRouter(prefix="/v1/keys", tags=["keys"])

KeyId = Annotated[str, Path(pattern="^[0-9a-f]{16}$")]


@router.get("")
async def list_keys(caller: Administrator) -> Keys:
    """List the keys of the user, also revoked ones; secrets are never shown."""
    keys = await list_api_keys(caller.gateway.store, caller.client.user_id)
    return Keys(items=tuple(keys))


@router.post("", status_code=201)
async def create_key(request: Request, body: CreateKey, caller: Administrator) -> CreatedKey:
    """Make a key of the same user; its secret is in this answer and nowhere else."""
    if excess := sorted(set(body.scopes) - caller.principal.scopes):
        raise Forbidden(f"A key may not have more scopes than the one that makes it: {excess[0]}.")
    made = await create_api_key(
        caller.gateway.store, caller.client.user_id, body.name, body.scopes, body.expires_in
    )
    audit(request, "key.create", made=made.key.id, scopes=made.key.scopes)
    return made


@router.delete("/{key_id}", status_code=204)
async def revoke_key(request: Request, key_id: KeyId, caller: Administrator) -> None:
    """Revoke a key of the user; every gateway refuses it within seconds."""
    gateway = caller.gateway
    if await find_api_key(gateway.store, caller.client.user_id, key_id) is None:
        raise NotFound(f"There is no key {key_id}.")
    await revoke_api_key(gateway.store, key_id)
    gateway.identities.keys.forget(key_id)
    audit(request, "key.revoke", revoked=key_id)
