"""The interface of a store, as a log needs it."""

import sys
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable


class Version(NamedTuple):
    """An object as it was read: its `tag` differs from that of every other version."""

    body: bytes
    tag: str


@runtime_checkable
class RetryingStore(Protocol):
    """A store that sends a request again where its outcome is not known."""

    on_retry: Callable[[str], None] | None
    """Is called before each repeat with a name of the failure, which has few values."""


class Store(Protocol):
    """Objects under keys: `a/b/c`, relative, without empty parts, `.` and `..` (else ValueError).

    What is written is durable once the call returns, and seen by every later read and list.
    Raises StoreUnavailable where time may mend it (the write may have happened or not), and
    StoreRefused where an operator has to act.
    """

    async def create(self, key: str, body: bytes) -> bool:
        """Write `key` unless it exists: true if this call wrote it, false if the key is taken.

        A store that retries after a lost answer may find its own write and call it taken: who
        must know reads the key.
        """

    async def read(self, key: str) -> bytes | None:
        """The object, or nothing where there is none."""

    async def replace(self, key: str, body: bytes) -> None:
        """Write `key` whether it exists or not: for caches, never for events."""

    async def read_version(self, key: str) -> Version | None:
        """The object with the tag of its version, or nothing where there is none."""

    async def replace_version(self, key: str, body: bytes, tag: str) -> bool:
        """Write `key` if its version is still `tag`: false if it has another one, or is gone.

        A store that retries after a lost answer may find its own write and call it another
        version: who must know reads the key.
        """

    async def delete(self, key: str) -> None:
        """Remove the object where there is one: to purge a conversation, and for nothing else."""

    async def folders(self, prefix: str, after: str = "", limit: int = 1000) -> list[str]:
        """The names between `prefix`, which ends with a slash, and the next slash.

        At most `limit`, each once, from the one that follows `after`. Stores agree on their
        order as long as no name begins with another. Some name one for a while after its last
        object was deleted.
        """

    async def list(self, prefix: str, after: str = "", limit: int = 1000) -> list[str]:
        """The keys that begin with `prefix` and sort after the key `after`, at most `limit`.

        Within a folder the order is that of their bytes.
        """

    async def close(self) -> None:
        """End what the store holds open; it is of no use afterwards."""


def check_key(key: str) -> str:
    """Return `key`. Raises ValueError where it could name something outside, or nothing."""
    parts = key.split("/")
    if "\0" in key or any(part in ("", ".", "..") for part in parts):
        raise ValueError(
            f"{key!r} is not a key of a store: write names joined by single slashes, none of them "
            "'.' or '..'."
        )
    return key


@dataclass(frozen=True)
class S3Access:
    """Endpoint and credentials of a bucket; boto3 looks up a value of None as it always does."""

    endpoint_url: str | None = None
    access_key: str | None = None
    secret_key: str | None = field(default=None, repr=False)
    region: str | None = None

    def is_whole(self) -> bool:
        """Tell whether nothing is left to look up."""
        return all((self.endpoint_url, self.access_key, self.secret_key, self.region))


KEYS_PER_PAGE = 1000


async def list_keys(store: Store, prefix: str, after: str = "") -> AsyncGenerator[str, None]:
    """Yield the keys that begin with `prefix` and sort after `after`, in the store's order."""
    while page := await store.list(prefix, after, KEYS_PER_PAGE):
        for key in page:
            yield key
        if len(page) < KEYS_PER_PAGE:
            return
        after = page[-1]


async def list_folders(store: Store, prefix: str) -> list[str]:
    """List all names between `prefix` and the next slash, in the store's order."""
    return await store.folders(prefix, limit=sys.maxsize)
