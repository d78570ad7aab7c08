"""The store of a client that reads and steers what is another user's by a grant."""

from dataclasses import dataclass, field

from perdure.errors import Forbidden, NotFound
from perdure.storage import keys
from perdure.storage.grants import Access, Kind, Shareable, read_access
from perdure.storage.log.lineage import Lineage, read_lineage
from perdure.storage.store import Store, Version
from perdure.storage.wholes import find_batch, find_discussion


@dataclass(eq=False)
class GrantedStore:
    """A store that reads the grant before each request, so that a revocation takes effect at once.

    It has the conversations of the owner, as a fork shares the events and files of others, also of
    other users', and of a batch or a discussion what is its own; nothing else of the owner's.
    Requests raise NotFound without a grant, and Forbidden if it does not cover them, besides the
    errors of the store. A grant for a batch lets its user read the conversations of its samples,
    and one for a discussion those of its agents.
    """

    store: Store
    of: Shareable
    user_id: str
    _lineage: Lineage | None = field(default=None, init=False)
    _whole: Shareable | None = field(default=None, init=False)

    @property
    def owner(self) -> str:
        return self.of.owner

    async def find_access(self) -> Access | None:
        """Return what the user may do; None without a grant."""
        access = await read_access(self.store, self.of, self.user_id)
        if access is None and (whole := await self._find_whole()) is not None:
            return "read" if await read_access(self.store, whole, self.user_id) else None
        return access

    async def require(self, access: Access) -> None:
        """Raise NotFound or Forbidden unless the user has this access."""
        granted = await self.find_access()
        if granted is None:
            raise _no_such(self.of)
        if access == "write" and granted == "read":
            command = "share" if self.of.kind == "conversation" else f"{self.of.kind} share"
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

    async def read_version(self, key: str) -> Version | None:
        await self.require("read")
        return await self.store.read_version(key) if await self._has(key) else None

    async def replace_version(self, key: str, body: bytes, tag: str) -> bool:  # noqa: ARG002
        await self.require_owner()
        return False

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
        if self.of.kind != "conversation":
            return False
        if self._lineage is None:
            self._lineage = await read_lineage(self.store, self.owner, self.of.id)
        return key.startswith(tuple(holder.prefix for holder in self._lineage))

    async def _find_whole(self) -> Shareable | None:
        """Find the batch of whose sample this is the conversation, or the discussion of its agent.

        Nothing of the owner's is read for a user with whom he never shared a batch or a discussion:
        how long that takes would tell whether the conversation exists.
        """
        if self.of.kind != "conversation" or not keys.is_derived(self.of.id):
            return None
        if self._whole is None and await self._has_mark("batch"):
            self._whole = await find_batch(self.store, self.of)
        if self._whole is None and await self._has_mark("discussion"):
            self._whole = await find_discussion(self.store, self.of)
        return self._whole

    async def _has_mark(self, kind: Kind) -> bool:
        """Tell whether the owner ever shared something of this kind with the user."""
        marks = f"{keys.shared_prefix(self.user_id, kind)}{self.owner}/"
        return bool(await self.store.list(marks, limit=1))

    def _owner_only(self) -> Forbidden:
        return Forbidden(f"Only {self.owner} can do that, whose {self.of.kind} it is.")


def open_granted(store: Store, of: Shareable, user_id: str) -> Store:
    """Return the store for what is the user's own, or another user's who may have shared it."""
    return store if of.owner == user_id else GrantedStore(store, of, user_id)


def _no_such(of: Shareable) -> NotFound:
    match of.kind:
        case "batch":
            return NotFound.for_batch(of.name)
        case "discussion":
            return NotFound.for_discussion(of.name)
        case "conversation":
            return NotFound.for_conversation(of.name)
