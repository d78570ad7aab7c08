"""Taking a snapshot of a folder: what is new in it goes to the store, and is told in a manifest."""

import asyncio
import hashlib
from collections import deque
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from storage.errors import Altered, Unrestorable
from storage.snapshots.folders import opened
from storage.snapshots.load import fetch, load
from storage.snapshots.manifest import Snapshot, to_body
from storage.snapshots.mark import Mark, Seen, locked, read_mark, tick, write_mark
from storage.snapshots.memory import Memory
from storage.snapshots.packs import Pack, Packer, thin
from storage.snapshots.reading import Reading, Secrets
from storage.snapshots.scan import Found, scan
from storage.snapshots.threads import to_end
from storage.snapshots.tree import File, Limits, Place, Places, Symlink, Tree
from storage.store import Store

AT_ONCE = 4
"""Packs on their way to the store; each has up to 8 MiB."""

FEW = 64
"""So many entries may be told again and again before a base is worth its while."""


async def take(
    store: Store,
    prefix: str,
    folder: Path,
    last: str | None,
    memory: Memory,
    secrets: Secrets | None = None,
) -> str | None:
    """The key of a new snapshot under `prefix`; None where nothing changed since the one at `last`.

    `prefix` is a conversation's, and `last` may lie under another's. Files that hold `secrets` are
    left out. Whatever is left half done is
    harmless, and so are others who take one of the same folder. Raises TooLarge, Altered and
    Unrestorable (of `last`), StoreError, and OSError where the folder itself cannot be read.
    """
    folder = await to_end(folder.resolve)
    async with locked(folder):
        mark = await to_end(read_mark, folder)
        before = await load(store, last, memory) if last else None
        here = before if mark.at == last else await _loadable(store, mark.at, memory)
        packer = Packer(prefix, {**_places(here), **_places(before)})
        tree, seen = await _read(store, folder, here.tree if here else {}, mark, packer, secrets)
        key = None
        if before is None or tree != before.tree:
            key = await _tell(store, prefix, tree, before, packer, memory)
        now = Mark(key or last, folder.stat().st_ino, seen)
        if now != mark:
            await to_end(write_mark, folder, now)
    return key


async def _loadable(store: Store, key: str | None, memory: Memory) -> Snapshot | None:
    # It would only have saved work.
    with suppress(Altered, Unrestorable):
        return await load(store, key, memory) if key else None
    return None


def _places(snapshot: Snapshot | None) -> Places:
    return snapshot.places if snapshot else {}


async def _read(
    store: Store,
    folder: Path,
    old: Tree,
    mark: Mark,
    packer: Packer,
    secrets: Secrets | None,
) -> tuple[Tree, Seen]:
    now = await to_end(tick, folder)
    with opened(folder) as root:
        found = await to_end(_nameable, await to_end(scan, root, Limits()), secrets)
        reading = Reading(root, found, old, mark.seen, packer, now, secrets)
        with closing(reading.packs()) as packs:
            await _put(store, packs)
    return reading.tree, reading.seen


def _nameable(found: list[Found], secrets: Secrets | None) -> list[Found]:
    """All but what has a secret in its very name."""
    if secrets is None or not secrets("\n".join(map(_names, found)).encode(errors="replace")):
        return found
    return [one for one in found if not secrets(_names(one).encode(errors="replace"))]


def _names(one: Found) -> str:
    target = one.entry.target if isinstance(one.entry, Symlink) else ""
    return f"{one.path}\n{target}"


async def _tell(
    store: Store, prefix: str, tree: Tree, before: Snapshot | None, packer: Packer, memory: Memory
) -> str:
    """Write what is left to be packed, and then the manifest."""
    base = await _base(store, before, memory)
    if base is None:
        await _gather(store, tree, packer)
    await _put(store, _rest(packer))
    spent, body = await to_end(_manifest, tree, packer.places, base, before)
    key = f"{prefix}workspace/{hashlib.sha256(body).hexdigest()}"
    await store.create(key, body)
    memory.put(Snapshot(key, tree, _live(tree, packer.places), base.key if base else key, spent))
    return key


async def _base(store: Store, before: Snapshot | None, memory: Memory) -> Snapshot | None:
    """None where it is time for a new one: the deltas together have become larger than it is."""
    if before is None or before.spent > len(before.tree) + FEW:
        return None
    return await load(store, before.base, memory)


def _manifest(
    tree: Tree, places: Places, base: Snapshot | None, before: Snapshot | None
) -> tuple[int, bytes]:
    if base is None or before is None:
        return 0, to_body(tree, places)
    changed = {path: one for path, one in tree.items() if base.tree.get(path) != one}
    gone = tuple(path for path in base.tree if path not in tree)
    spent = before.spent + len(changed) + len(gone)
    return spent, to_body(changed, places, base.key, spent, gone)


async def _gather(store: Store, tree: Tree, packer: Packer) -> None:
    live = _live(tree, packer.places)
    for pack in thin(live):
        # What is damaged stays where it is: who restores it is told.
        with suppress(Altered):
            body = await fetch(store, pack)
            shas = [sha for sha, place in live.items() if place.pack == pack]
            await to_end(packer.repack, body, shas)
            await _put(store, iter(packer.taken()))


def _live(tree: Tree, places: Places) -> dict[str, Place]:
    files = (entry for entry in tree.values() if isinstance(entry, File))
    return {sha: places[sha] for file in files for sha in file.pieces if sha in places}


def _rest(packer: Packer) -> Iterator[Pack]:
    packer.close()
    yield from packer.taken()


async def _put(store: Store, packs: Iterator[Pack]) -> None:
    """They are made in a thread while those before them are on their way."""
    under_way: deque[asyncio.Task[bool]] = deque()
    try:
        while (pack := await to_end(next, packs, None)) is not None:
            under_way.append(asyncio.create_task(store.create(pack.key, pack.body)))
            if len(under_way) >= AT_ONCE:
                await under_way.popleft()
        while under_way:
            await under_way.popleft()
    finally:
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
