"""Making a folder what a snapshot says, all of it or nothing."""

import asyncio
import errno
import hashlib
import os
import shutil
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing
from pathlib import Path
from uuid import uuid4

from storage.errors import StoreRefused, Unrestorable
from storage.snapshots.folders import opened
from storage.snapshots.load import fetch, load
from storage.snapshots.making import (
    Owner,
    Part,
    finish,
    finish_root,
    make_names,
    parts_by_pack,
    write_parts,
)
from storage.snapshots.manifest import Snapshot
from storage.snapshots.mark import Mark, Seen, aside, locked, remove_mark, tick, write_mark
from storage.snapshots.memory import Memory
from storage.snapshots.packs import PACK, inflated
from storage.snapshots.threads import to_end
from storage.store import Store

AT_ONCE = 4
"""Packs on their way from the store; each has up to 8 MiB."""


async def restore(
    store: Store,
    key: str,
    folder: Path,
    memory: Memory | None = None,
    owner: Owner | None = None,
) -> None:
    """Make `folder` the snapshot at `key`; what else is in it goes, whether it was kept or not.

    The files are made beside it and take its place at once; where it ends before that, the folder
    is as it was, or `at(folder)` is None. What is made belongs to `owner`, or to this process.
    Raises Altered, Unrestorable, StoreError, and OSError where the folder cannot be made.
    """
    snapshot = await load(store, key, memory or Memory())
    folder = await to_end(folder.resolve)
    async with locked(folder):
        await to_end(_remove, aside(folder))
        try:
            new = await to_end(_empty, aside(folder))
            seen = await _make(store, snapshot, folder, new, owner)
            inode = await to_end(_replace, folder, new, snapshot, owner)
            await to_end(write_mark, folder, Mark(key, inode, seen))
        finally:
            await to_end(_remove, aside(folder))


def _empty(place: Path) -> Path:
    new = place / f"new-{uuid4().hex}"
    new.mkdir(0o700, parents=True)
    return new


async def _make(
    store: Store, snapshot: Snapshot, folder: Path, new: Path, owner: Owner | None
) -> Seen:
    with opened(new) as root:
        await to_end(make_names, root, snapshot.tree)
        parts = parts_by_pack(snapshot.tree, snapshot.places)
        async with aclosing(_fetched(store, parts)) as packs:
            async for pack, body in packs:
                pieces = _unpacked(snapshot.key, body, parts[pack])
                await to_end(write_parts, root, pieces)
        return await to_end(_finished, root, folder, snapshot, owner)


async def _fetched(store: Store, packs: Iterable[str]) -> AsyncGenerator[tuple[str, bytes], None]:
    """The packs in turn, the next ones being fetched while one is worked on."""
    under_way: deque[tuple[str, asyncio.Task[bytes]]] = deque()
    try:
        for pack in packs:
            under_way.append((pack, asyncio.create_task(fetch(store, pack))))
            if len(under_way) >= AT_ONCE:
                first, task = under_way.popleft()
                yield first, await task
        while under_way:
            first, task = under_way.popleft()
            yield first, await task
    finally:
        for _, task in under_way:
            task.cancel()
        await asyncio.gather(*(task for _, task in under_way), return_exceptions=True)


def _unpacked(key: str, body: bytes, parts: Iterable[Part]) -> Iterator[tuple[str, int, bytes]]:
    try:
        raw = inflated(body, PACK)
    except ValueError as error:
        raise Unrestorable(key, f"a pack of it is none: {error}") from error
    for path, offset, sha, place in parts:
        data = raw[place.offset : place.offset + place.length]
        if hashlib.sha256(data).hexdigest() != sha:
            raise Unrestorable(key, f"{path!r} is not in the pack that it names")
        yield path, offset, data


def _finished(root: int, folder: Path, snapshot: Snapshot, owner: Owner | None) -> Seen:
    seen = finish(root, snapshot.tree, owner)
    now = tick(folder)
    return {path: one for path, one in seen.items() if one[1] < now}


def _replace(folder: Path, new: Path, snapshot: Snapshot, owner: Owner | None) -> int:
    remove_mark(folder)
    try:
        if folder.exists():
            _unlock(folder)
            folder.rename(new.with_name(f"old-{uuid4().hex}"))
        new.rename(folder)
    except OSError as error:
        if error.errno in (errno.EBUSY, errno.EXDEV):
            raise StoreRefused(
                f"{folder} cannot be replaced by a restored workspace: something is mounted "
                "there; let the workspace be a folder inside of it."
            ) from error
        raise
    with opened(folder) as root:
        finish_root(root, snapshot.tree, owner)
        return os.fstat(root).st_ino


def _remove(doomed: Path) -> None:
    """Follows no link. What cannot be removed is tried again next time."""
    if os.geteuid() != 0:
        for place, names, _ in os.walk(doomed):
            for name in names:
                _unlock(Path(place, name))
    shutil.rmtree(doomed, ignore_errors=True)


def _unlock(folder: Path) -> None:
    """Only root may move and empty a folder whatever its mode is."""
    if os.geteuid() != 0 and not folder.is_symlink():
        folder.chmod(0o700)
