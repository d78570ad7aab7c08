"""The batch that a route is about."""

from typing import Annotated, TypeAlias

from fastapi import Depends, Path

from perdure.client.batch.batches import Batches
from perdure.client.batch.handle import BatchHandle
from perdure.gateway.callers import Caller, Owner, Reader, Writer

BATCH_PATTERN = "^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$"

BatchName: TypeAlias = Annotated[str, Path(pattern=BATCH_PATTERN)]


async def find_batch(caller: Caller, name: str, owner: str | None) -> BatchHandle:
    """Find a batch of the user, or of an owner who has shared it. Raises NotFound."""
    batch = Batches.from_client(caller.client).batch(name, owner)
    await batch.load_record()
    return batch


async def _find_to_read(caller: Reader, name: BatchName, owner: Owner = None) -> BatchHandle:
    return await find_batch(caller, name, owner)


async def _find_to_write(caller: Writer, name: BatchName, owner: Owner = None) -> BatchHandle:
    return await find_batch(caller, name, owner)


ToRead: TypeAlias = Annotated[BatchHandle, Depends(_find_to_read)]
ToWrite: TypeAlias = Annotated[BatchHandle, Depends(_find_to_write)]
