"""The store of a client that reads and steers what is another user's by a grant."""

import json
from dataclasses import dataclass, field

from perdure.errors import Forbidden, NotFound
from perdure.storage import keys
from perdure.storage.grants import Access, Shareable, read_access
from perdure.storage.log.lineage import Lineage, read_lineage
from perdure.storage.store import Store


@dataclass(eq=False)
class GrantedStore:
    """A store that reads the grant before each request, so that a revocation takes effect at once.

    It has the conversations of the owner, as a fork shares the events and files of others, also of
    other users', and of a batch what is the batch's; nothing else of the owner's. Requests raise
    NotFound without a grant, and Forbidden if it does not cover them, besides the errors of the
    store. A grant for a batch lets its user read the conversations of its samples.
    """

    store: Store
    of: Shareable
    user_id: str
    _lineage: Lineage | None = field(default=None, init=False)
    _batch: Shareable | None = field(default=None, init=False)

    @property
    def owner(self) -> str:
        return self.of.owner

    async def find_access(self) -> Access | None:
        """Return what the user may do; None without a grant."""
        access = await read_access(self.store, self.of, self.user_id)
        if access is None and (batch := await self._find_batch()) is not None:
            return "read" if await read_access(self.store, batch, self.user_id) else None
        return access

    async def require(self, access: Access) -> None:
        """Raise NotFound or Forbidden unless the user has this access."""
        granted = await self.find_access()
        if granted is None:
            raise _no_such(self.of)
        if access == "write" and granted == "read":
            command = "share" if self.of.kind == "conversation" else "batch share"
            raise Forbidden(
                f"You may read the {self.of.kind} {self.of.name}, and not steer it.",
                f"{self.owner} can grant that: `perdure {command} {self.of.id} {self.user_id} "
                "--write`.",
            )

    async def require_owner(self) -> None:
        """Raise NotFound without a grant, and Forbidden with one."""
        await self.require("read")
        raise self._owner_only()

    async def create(self, key: str, body: bytes) -> bool:
        """Write the bytes of a message: all else is written by the owner and the workers."""
        await self.require("write")
        if self.of.kind != "conversation" or not key.startswith(self.of.prefix + keys.BLOBS):
            raise self._owner_only()
        return await self.store.create(key, body)

    async def replace(self, key: str, body: bytes) -> None:  # noqa: ARG002 - a store's signature
        await self.require_owner()

    async def delete(self, key: str) -> None:  # noqa: ARG002
        await self.require_owner()

    async def read(self, key: str) -> bytes | None:
        await self.require("read")
        return await self.store.read(key) if await self._has(key) else None

    async def folders(self, prefix: str, after: str = "", limit: int = 1000) -> list[str]:
        await self.require("read")
        return await self.store.folders(prefix, after, limit) if await self._has(prefix) else []

    async def list(self, prefix: str, after: str = "", limit: int = 1000) -> list[str]:
        await self.require("read")
        return await self.store.list(prefix, after, limit) if await self._has(prefix) else []

    async def close(self) -> None:
        """Leave the store open: it belongs to the client."""

    async def _has(self, key: str) -> bool:
        own = (keys.conversations_prefix(self.owner), self.of.prefix, keys.APP_STATE)
        if key.startswith(own):
            return True
        if self.of.kind == "batch":
            return False
        if self._lineage is None:
            self._lineage = await read_lineage(self.store, self.owner, self.of.id)
        return key.startswith(tuple(holder.prefix for holder in self._lineage))

    async def _find_batch(self) -> Shareable | None:
        """Find the batch of whose sample this is the conversation, by its first event.

        Nothing of the owner's is read for a user with whom he never shared a batch: how long that
        takes would tell whether the conversation exists.
        """
        if self.of.kind != "conversation" or not keys.is_derived(self.of.id):
            return None
        if self._batch is None:
            marks = f"{keys.shared_prefix(self.user_id, 'batch')}{self.owner}/"
            if not await self.store.list(marks, limit=1):
                return None
            body = await self.store.read(self.of.prefix + keys.event_key(self.of.id, 0))
            try:
                name = json.loads(body or b"{}")["value"]["trial"]["batch"]
                self._batch = Shareable("batch", self.owner, name)
            except (ValueError, LookupError, TypeError, RecursionError):  # of no sample
                return None
        return self._batch

    def _owner_only(self) -> Forbidden:
        return Forbidden(f"Only {self.owner} can do that, whose {self.of.kind} it is.")


def open_granted(store: Store, of: Shareable, user_id: str) -> Store:
    """Return the store for what is the user's own, or another user's who may have shared it."""
    return store if of.owner == user_id else GrantedStore(store, of, user_id)


def _no_such(of: Shareable) -> NotFound:
    if of.kind == "batch":
        return NotFound.for_batch(of.name)
    return NotFound.for_conversation(of.name)
