"""Addresses of conversations and of schedules, and what others post to them."""

from typing import Annotated, Any, TypeAlias

from fastapi import APIRouter, Header, Path, Request

from perdure.api.addresses import (
    ADDRESS_ID_PATTERN,
    ADDRESS_SECRET_PATTERN,
    MAX_POST_BYTES,
    AddressList,
    CreateAddress,
    CreatedAddress,
    TakenPost,
)
from perdure.client.webhooks.addresses import Addresses
from perdure.client.webhooks.posts import deliver_post
from perdure.client.webhooks.protocol import absent_address
from perdure.gateway.callers import COSTLY, Reader, Writer, find_gateway
from perdure.gateway.edge.audit import audit
from perdure.gateway.errors import Refused
from perdure.gateway.gateway import Gateway
from perdure.storage.credentials.addresses import StoredAddress, read_address
from perdure.webhooks.signing import find_signature_error

router = APIRouter(prefix="/v1", tags=["webhooks"])

AddressId: TypeAlias = Annotated[str, Path(pattern=ADDRESS_ID_PATTERN)]
AddressSecret: TypeAlias = Annotated[str, Path(pattern=ADDRESS_SECRET_PATTERN)]
PostId: TypeAlias = Annotated[
    str | None,
    Header(alias="webhook-id", min_length=1, max_length=255, description="The same is taken once."),
]

HINT = "Sign it with the secret of the address, as Standard Webhooks are, when you post it."

BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": {}}, "text/plain": {"schema": {}}},
    }
}


@router.get("/addresses")
async def list_addresses(caller: Reader) -> AddressList:
    """List the addresses of the user, the oldest first."""
    return AddressList(items=tuple(await Addresses(caller.client).list_addresses()))


@router.post("/addresses", status_code=201, dependencies=COSTLY)
async def create_address(request: Request, body: CreateAddress, caller: Writer) -> CreatedAddress:
    """Create an address; the answer alone has the path that others post to, and the secret."""
    made = await Addresses(caller.client).create(body)
    leads_to = {"conversation": made.conversation_id, "schedule": made.schedule}
    audit(request, "address.create", made=made.id, **{k: v for k, v in leads_to.items() if v})
    return made


@router.delete("/addresses/{address_id}", status_code=204)
async def revoke_address(request: Request, address_id: AddressId, caller: Writer) -> None:
    """Revoke an address: nothing that is posted there arrives."""
    await Addresses(caller.client).revoke(address_id)
    audit(request, "address.revoke", revoked=address_id)


@router.post("/posts/{address_id}/{secret}", status_code=202, openapi_extra=BODY)
async def take_post(
    request: Request, address_id: AddressId, secret: AddressSecret, webhook_id: PostId = None
) -> TakenPost:
    """Deliver a post to where its address leads; it needs no key, and a signature if that says so.

    A message, and the text below the task of a schedule, is `text` of a JSON object that has it, or
    else the whole body. The data of a signal are the JSON of the body, or else its text.
    """
    gateway = find_gateway(request)
    address = await _find_address(gateway, request, address_id, secret)
    body = await request.body()
    if len(body) > MAX_POST_BYTES:
        raise Refused(413, "too_large", f"A post has {MAX_POST_BYTES:,} bytes at most.")
    _require_signature(gateway, request, address.open_secret(secret), body)
    gateway.rates.take("costly", f"address {address_id}")
    return await deliver_post(gateway.client_for(address.user_id), address, body, webhook_id)


async def _find_address(
    gateway: Gateway, request: Request, address_id: str, secret: str
) -> StoredAddress:
    """Return the address. Raises NotFound, and Refused for whoever guesses too often."""
    host = request.client.host if request.client else ""
    gateway.rates.require("failure", host)
    address = await read_address(gateway.store, address_id)
    if address is None or not address.matches(secret):
        gateway.rates.count("failure", host)
        raise absent_address(address_id)
    return address


def _require_signature(
    gateway: Gateway, request: Request, signing_secret: str | None, body: bytes
) -> None:
    """Raise Refused for a post that is not signed with the secret of its address, if it has one."""
    if signing_secret is None:
        return
    if problem := find_signature_error(signing_secret, request.headers, body):
        gateway.rates.count("failure", request.client.host if request.client else "")
        raise Refused(401, "unsigned", f"The post is not signed as it has to be: {problem}.", HINT)
