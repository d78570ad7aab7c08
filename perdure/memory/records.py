"""Memories as objects of the store: each version is written once, and they alone are the truth.

A put writes a mark, then the version: so whatever happens in between, the index learns of every
version that there is. A mark goes once the index has the version, unless somebody makes the index
anew just then, and has noted so. A removal is a version without a text; the versions before it are
deleted.
"""

import uuid
from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from pydantic import ValidationError
from pydantic_core import to_json

from perdure.api.memories import Memory, MemorySource, PutMemory
from perdure.events.base import TIMESTAMP_FORMAT, Tolerant
from perdure.storage import keys
from perdure.storage.conversations import creation_time
from perdure.storage.errors import Altered
from perdure.storage.ids import new_sortable_id
from perdure.storage.parallel import map_parallel
from perdure.storage.store import KEYS_PER_PAGE, Store, list_keys

NAMESPACE = uuid.UUID("6d1f2c0e-9a53-5d0e-8f43-2f7f3f0f6a11")
"""The namespace of ids that follow from a key."""


REBUILD = "rebuild-"
"""The beginning of the marks of those who make an index anew."""

MAX_REBUILD_TIME = timedelta(hours=1)
"""Time after which such a mark is taken to be that of a process that was killed."""


class Tombstone(Tolerant):
    """The version of a memory that was removed."""

    id: str
    version: int
    removed: str
    """When, in UTC."""


MAX_KNOWN_WRITES = 32
"""The newest writes that a version names: a call that is tried again after so many others of the
same key would write once more."""


class _Writes(Tolerant):
    """The ids of the newest calls that wrote this version of a memory and those before it."""

    writes: tuple[str, ...] = ()


Record: TypeAlias = tuple[Memory | Tombstone | None, tuple[str, ...]]
"""A version, or None for none, and the writes that it names."""

NOTHING: Record = (None, ())


@dataclass(frozen=True, order=True)
class Version:
    """A version of a memory, by its name in the store."""

    id: str
    number: int

    @property
    def name(self) -> str:
        return keys.memory_version(self.id, self.number)


@dataclass(frozen=True)
class Author:
    """The author of a memory, and the conversation that it comes from."""

    source: MemorySource = "user"
    conversation_id: str | None = None


A_USER = Author()


class MemoryRecords:
    """The memories of one user in a store. Raises ValueError for an invalid user id."""

    def __init__(self, store: Store, user_id: str) -> None:
        self.store = store
        self.user_id = user_id
        self._prefix = keys.memory_prefix(user_id)
        self._changes = keys.memory_changes_prefix(user_id)

    async def put(
        self,
        draft: PutMemory,
        author: Author = A_USER,
        memory_id: str | None = None,
        revive: bool = True,
        write_id: str = "",
    ) -> tuple[Memory | None, bool]:
        """Write a memory; return it as it is then, and whether it was not there before.

        One with a key, or with a `memory_id` of the caller's, is there already if its content is
        the same. A removed one comes back only with `revive`; otherwise the result is None. A put
        with the `write_id` of one that took place writes nothing, whatever has been put or removed
        since: so a call that is made again, or that goes on late, takes nothing back.
        """
        known = memory_id or draft.key is not None
        memory_id = memory_id or find_id(draft)
        while True:
            newest, writes = await self._load_newest(memory_id) if known else NOTHING
            if isinstance(newest, Memory) and (has_content(newest, draft) or write_id in writes):
                return newest, False
            if isinstance(newest, Tombstone) and (write_id in writes or not revive):
                return None, False
            number = 1 if newest is None else newest.version + 1
            version = Version(memory_id, number)
            memory = _build(draft, author, version)
            if await self._create(memory, (*writes, *filter(None, [write_id]))):
                if known:
                    await self._delete_if_late(version)
                return memory, True
            known = True  # another writer was faster, or this was our own lost answer

    async def remove(self, memory_id: str) -> bool:
        """Remove a memory, and delete its texts; return whether there was one."""
        while True:
            versions = await self._list_versions(memory_id)
            newest, writes = await self._load(versions[-1]) if versions else NOTHING
            if versions and newest is None:
                continue  # it was deleted, as a newer one was written meanwhile
            if not isinstance(newest, Memory):
                await self._delete(versions[:-1])
                return False
            stone = Tombstone(id=memory_id, version=newest.version + 1, removed=_now())
            if await self._create(stone, writes):
                await self._delete(versions)
                return True

    async def get(self, memory_id: str) -> Memory | None:
        """Return a memory; None where there is none, or no longer. Raises Altered, ValueError."""
        newest = await self.read_newest(memory_id)
        return newest if isinstance(newest, Memory) else None

    async def read_newest(self, memory_id: str) -> Memory | Tombstone | None:
        """Read the newest version of a memory. Raises Altered, ValueError for a bad id."""
        return (await self._load_newest(memory_id))[0]

    async def read(self, version: Version) -> Memory | Tombstone | None:
        """Read a version; None where it is not written yet, or was deleted. Raises Altered."""
        return (await self._load(version))[0]

    async def _load_newest(self, memory_id: str) -> Record:
        while versions := await self._list_versions(memory_id):
            newest, writes = await self._load(versions[-1])
            if newest is not None:
                return newest, writes
            # It was deleted, as a newer one was written meanwhile.
        return NOTHING

    async def _load(self, version: Version) -> Record:
        """Read a version, with the writes that it names. Raises Altered."""
        key = self._key(version)
        body = await self.store.read(key)
        if body is None:
            return NOTHING
        kind = Memory if b'"text"' in body else Tombstone
        try:
            record = kind.model_validate_json(body)
            writes = _Writes.model_validate_json(body).writes
        except ValidationError as error:
            raise Altered(key) from error
        if Version(record.id, record.version) != version:
            raise Altered(key)
        return record, writes

    async def list_newest(self, after: str = "") -> AsyncGenerator[Version, None]:
        """Yield the newest version of each memory, removed ones too, whose id sorts behind one."""
        start = f"{self._prefix}{after}~" if after else ""
        newest: Version | None = None
        async for key in list_keys(self.store, self._prefix, start):
            version = _parse(key.removeprefix(self._prefix).removesuffix(".json"))
            if version is None:
                continue
            if newest is not None and newest.id != version.id:
                yield newest
            newest = version
        if newest is not None:
            yield newest

    async def read_all(self, versions: Sequence[Version]) -> list[Memory]:
        """Read those of the versions that are memories and still there, in their order."""
        records = [record async for record in map_parallel(self.read, versions)]
        return [record for record in records if isinstance(record, Memory)]

    async def list_changes(self) -> list[Version]:
        """List versions that the index may lack, at most a page of them."""
        listed = await self.store.list(self._changes, limit=KEYS_PER_PAGE)
        parsed = (_parse(key.removeprefix(self._changes)) for key in listed)
        return [version for version in parsed if version is not None]

    async def list_all_changes(self) -> list[Version]:
        """List all versions that the index may lack."""
        parsed = [
            _parse(key.removeprefix(self._changes))
            async for key in list_keys(self.store, self._changes)
        ]
        return [version for version in parsed if version is not None]

    async def settle(self, changes: Sequence[Version]) -> None:
        """Note that the index has these versions, or later ones; delete what is out of date."""
        newest = {version.id: version for version in sorted(changes)}
        outdated = {version for version in changes if version != newest[version.id]}
        before = (Version(version.id, version.number - 1) for version in newest.values())
        outdated.update(version for version in before if version.number)
        await self._delete(sorted(outdated))
        await _delete_all(self.store, [self._changes + version.name for version in changes])

    async def note_rebuild(self) -> str:
        """Note that an index is made anew, and return the name of the mark.

        Until it is deleted no change is settled: whoever takes one into the index before may take
        it into a table that is replaced.
        """
        name = f"{REBUILD}{new_sortable_id()}"
        await self.store.create(self._changes + name, b"")
        return name

    async def list_rebuilds(self) -> set[str]:
        """List the marks of `note_rebuild` that may be those of somebody at work."""
        prefix = self._changes + REBUILD
        names = {key.removeprefix(prefix) async for key in list_keys(self.store, prefix)}
        since = datetime.now(UTC) - MAX_REBUILD_TIME
        begun = {name: keys.is_conversation_id(name) and creation_time(name) for name in names}
        return {REBUILD + name for name, time in begun.items() if time and time > since}

    async def end_rebuilds(self, marks: Iterable[str]) -> None:
        """Delete marks of `note_rebuild`."""
        await _delete_all(self.store, [self._changes + name for name in sorted(marks)])

    async def _create(self, record: Memory | Tombstone, writes: Sequence[str]) -> bool:
        version = Version(record.id, record.version)
        fields = {**record.model_dump(mode="json"), "writes": writes[-MAX_KNOWN_WRITES:]}
        await self.store.create(self._changes + version.name, b"")
        return await self.store.create(self._key(version), to_json(fields))

    async def _delete_if_late(self, version: Version) -> None:
        """Delete a version that was written once a newer one was, and its place was free again.

        Else its text would stay though the memory is removed.
        """
        if any(version < other for other in await self._list_versions(version.id)):
            await self._delete([version])

    async def _list_versions(self, memory_id: str) -> list[Version]:
        """List the versions of a memory, the oldest first. Raises ValueError for a bad id."""
        prefix = f"{self._prefix}{keys.check_memory_id(memory_id)}."
        parsed = [
            _parse(key.removeprefix(self._prefix).removesuffix(".json"))
            async for key in list_keys(self.store, prefix)
        ]
        return sorted(version for version in parsed if version is not None)

    async def _delete(self, versions: Sequence[Version]) -> None:
        await _delete_all(self.store, [self._key(version) for version in versions])

    def _key(self, version: Version) -> str:
        return f"{self._prefix}{version.name}.json"


def find_id(draft: PutMemory) -> str:
    """Return the id of a memory, which follows from its app and its key, if it has one."""
    if draft.key is None:
        return new_sortable_id()
    return str(uuid.uuid5(NAMESPACE, f"{draft.app}\0{draft.key}"))


def has_content(memory: Memory, draft: PutMemory) -> bool:
    return all(getattr(memory, name) == value for name, value in dict(draft).items())


def _build(draft: PutMemory, author: Author, version: Version) -> Memory:
    return Memory(
        id=version.id,
        version=version.number,
        source=author.source,
        conversation_id=author.conversation_id,
        created=_now(),
        **dict(draft),
    )


def _now() -> str:
    return datetime.now(UTC).strftime(TIMESTAMP_FORMAT)


def _parse(name: str) -> Version | None:
    """Parse the name of a version; None for an object that is not ours."""
    memory_id, _, number = name.partition(".")
    if not (keys.is_conversation_id(memory_id) and number.isdecimal() and len(number) == 6):
        return None
    return Version(memory_id, int(number))


async def _delete_all(store: Store, listed: Sequence[str]) -> None:
    async for _ in map_parallel(store.delete, listed):
        pass
