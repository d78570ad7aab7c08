"""The interface of a log that is read, whether the store itself or a gateway is asked."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Protocol, TypeAlias

from perdure.events.entry import Entry
from perdure.storage.errors import BadSlot

EntryOrError: TypeAlias = Entry | BadSlot
"""The entry of a slot, or the error of reading it; each has a `seq`."""


class ReadableLog(Protocol):
    """The events of a conversation, in order, with the objects they refer to."""

    @property
    def user_id(self) -> str: ...
    @property
    def conversation_id(self) -> str: ...
    @property
    def prefix(self) -> str:
        """The beginning of the keys of the conversation's objects in the store."""

    async def exists(self) -> bool:
        """Check whether anything is recorded of it, if only the fork it begins with."""

    async def find(self, seq: int) -> Entry | None:
        """Return the entry of slot `seq`, or None if the slot is free. Raises Damaged."""

    async def get(self, seq: int) -> Entry:
        """Return the entry of slot `seq`, which must exist. Raises Missing and Damaged."""

    async def read(self, first: int, limit: int) -> list[Entry]:
        """Return the entries from slot `first` on, at most `limit`, fewer only at the log's end.

        Raises Missing or Damaged for the first slot that cannot be read.
        """

    async def read_slots(self, first: int, limit: int) -> list[EntryOrError]:
        """Read like `read`, with the error in place of each entry that is missing or damaged."""

    def pages(self, end: int | None = None) -> AsyncGenerator[list[EntryOrError], None]:
        """Yield the log, or its slots before `end`, in pages as `read_slots` returns them."""

    async def end(self, hint: int = 0) -> int:
        """Return the number of slots; `hint` is the number that the caller knows of."""

    async def first_own_seq(self) -> int:
        """Return the first slot that is not that of a conversation which this one forks."""

    def tail(
        self, after: int = -1, is_idle: Callable[[], Awaitable[bool]] | None = None
    ) -> AsyncGenerator[Entry, None]:
        """Yield the entries after slot `after`, and then each new one as it comes.

        `is_idle` is called whenever there is nothing more to read; once it returns true, the tail
        ends after what was written until then. Raises Damaged.
        """

    async def read_blob(self, key: str) -> bytes | None:
        """Return the blob under `key`. Raises ValueError if no blob has such a key, and Altered."""

    async def load_state(self) -> bytes | None:
        """Return the body of a state of the log as it was at some time, if there is one."""

    async def load_trouble(self) -> bytes | None:
        """Return the body last saved of what keeps the conversation from going on."""
