"""The access of a client to conversations and batches: its user's own, or by another's grant."""

from typing import Literal

from perdure.storage.granted_store import GrantedStore
from perdure.storage.grants import Access
from perdure.storage.store import Store


async def require_access(store: Store, access: Access) -> None:
    """Check the grant for what is another user's.

    Raises NotFound without one, and Forbidden if it does not cover the access.
    """
    if isinstance(store, GrantedStore):
        await store.require(access)


async def find_access(store: Store) -> Literal["owner", "read", "write"]:
    """Return what the client may do; of a grant that was just revoked, it could read."""
    return (await store.find_access() or "read") if isinstance(store, GrantedStore) else "owner"


async def require_owner(store: Store) -> None:
    """Check that the store is not that of a grant. Raises NotFound and Forbidden otherwise."""
    if isinstance(store, GrantedStore):
        await store.require_owner()
