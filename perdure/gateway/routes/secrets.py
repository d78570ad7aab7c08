"""The secrets that a user hands in: their values come in, and never out."""

from typing import Annotated

from fastapi import APIRouter, Path, Request

from perdure.api.secrets import PutSecret, Secrets
from perdure.gateway.callers import Reader, Writer
from perdure.gateway.edge.audit import audit

router = APIRouter(prefix="/v1/secrets", tags=["secrets"])

SecretName = Annotated[str, Path(pattern="^[A-Za-z_][A-Za-z0-9_]{0,127}$")]


@router.get("")
async def list_secrets(caller: Reader) -> Secrets:
    """List the secrets of the user by name, with their descriptions and without their values."""
    return Secrets(items=tuple(await caller.client.list_secrets()))


@router.put("/{name}", status_code=204)
async def put_secret(request: Request, name: SecretName, body: PutSecret, caller: Writer) -> None:
    """Hand a secret in, in place of one of the same name; the store has it encrypted.

    Commands of agents that name it have it. It is refused where the installation has no keys.
    """
    await caller.client.put_secret(name, body.value, body.description)
    audit(request, "secret.put", secret=name)


@router.delete("/{name}", status_code=204)
async def remove_secret(request: Request, name: SecretName, caller: Writer) -> None:
    """Remove a secret of the user: no later command has it."""
    await caller.client.remove_secret(name)
    audit(request, "secret.remove", secret=name)
