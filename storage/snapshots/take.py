"""Taking a snapshot: new pieces of the folder go to the store, and a manifest names them."""

import asyncio
import hashlib
from collections import deque
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from perdure.storage.errors import Altered, Unrestorable
from perdure.storage.snapshots.folders import open_folder, to_thread_shielded
from perdure.storage.snapshots.load import SnapshotCache, fetch, load
from perdure.storage.snapshots.manifest import Snapshot, encode_manifest
from perdure.storage.snapshots.mark import (
    FileStamps,
    Mark,
    file_system_time,
    folder_lock,
    read_mark,
    write_mark,
)
from perdure.storage.snapshots.packs import Pack, Packer, find_thin_packs
from perdure.storage.snapshots.reading import FindSecrets, ScannedEntry, TreeReader, scan
from perdure.storage.snapshots.tree import (
    File,
    PieceLocation,
    PieceLocations,
    SnapshotLimits,
    Symlink,
    Tree,
)
from perdure.storage.store import Store

PARALLEL_PACKS = 4
"""Packs that are uploaded at the same time; each has up to 8 MiB."""

MAX_CHEAP_DELTA = 64
"""Entries that deltas may repeat before a new base is worth its cost."""


async def take(
    store: Store,
    prefix: str,
    folder: Path,
    last: str | None,
    memory: SnapshotCache,
    secrets: FindSecrets | None = None,
) -> str | None:
    """Store a new snapshot under `prefix`; return its key, or None if nothing changed since `last`.

    `prefix` is a conversation's, and `last` may lie under another's. Files that hold `secrets` are
    left out. An interrupted or a concurrent call for the same folder does no harm. Raises TooLarge,
    Altered and Unrestorable (of `last`), StoreError, and OSError if the folder cannot be read.
    """
    folder = await to_thread_shielded(folder.resolve)
    async with folder_lock(folder):
        mark = await to_thread_shielded(read_mark, folder)
        previous = await load(store, last, memory) if last else None
        current = previous if mark.key == last else await _try_load(store, mark.key, memory)
        packer = Packer(prefix, {**_locations_of(current), **_locations_of(previous)})
        tree, stamps = await _read(
            store, folder, current.tree if current else {}, mark, packer, secrets
        )
        key = None
        if previous is None or tree != previous.tree:
            key = await _write_manifest(store, prefix, tree, previous, packer, memory)
        new_mark = Mark(key or last, folder.stat().st_ino, stamps)
        if new_mark != mark:
            await to_thread_shielded(write_mark, folder, new_mark)
    return key


async def _try_load(store: Store, key: str | None, memory: SnapshotCache) -> Snapshot | None:
    # It only saves work.
    with suppress(Altered, Unrestorable):
        return await load(store, key, memory) if key else None
    return None


def _locations_of(snapshot: Snapshot | None) -> PieceLocations:
    return snapshot.locations if snapshot else {}


async def _read(
    store: Store,
    folder: Path,
    old: Tree,
    mark: Mark,
    packer: Packer,
    secrets: FindSecrets | None,
) -> tuple[Tree, FileStamps]:
    now = await to_thread_shielded(file_system_time, folder)
    with open_folder(folder) as root:
        scanned = await to_thread_shielded(
            _without_secret_names, await to_thread_shielded(scan, root, SnapshotLimits()), secrets
        )
        reading = TreeReader(root, scanned, old, mark.stamps, packer, now, secrets)
        with closing(reading.read_packs()) as packs:
            await _upload(store, packs)
    return reading.tree, reading.stamps


def _without_secret_names(
    scanned: list[ScannedEntry], secrets: FindSecrets | None
) -> list[ScannedEntry]:
    """Leave out paths that contain a secret themselves."""
    if secrets is None or not secrets("\n".join(map(_name_text, scanned)).encode(errors="replace")):
        return scanned
    return [item for item in scanned if not secrets(_name_text(item).encode(errors="replace"))]


def _name_text(item: ScannedEntry) -> str:
    target = item.entry.target if isinstance(item.entry, Symlink) else ""
    return f"{item.path}\n{target}"


async def _write_manifest(
    store: Store,
    prefix: str,
    tree: Tree,
    previous: Snapshot | None,
    packer: Packer,
    memory: SnapshotCache,
) -> str:
    """Upload the last packs, and then the manifest."""
    base = await _base(store, previous, memory)
    if base is None:
        await _repack_thin(store, tree, packer)
    await _upload(store, _last_packs(packer))
    delta_entries, body = await to_thread_shielded(_encode, tree, packer.locations, base, previous)
    key = f"{prefix}workspace/{hashlib.sha256(body).hexdigest()}"
    await store.create(key, body)
    memory.put(
        Snapshot(
            key,
            tree,
            _locations_in_use(tree, packer.locations),
            base.key if base else key,
            delta_entries,
        )
    )
    return key


async def _base(store: Store, previous: Snapshot | None, memory: SnapshotCache) -> Snapshot | None:
    """Load the base; None if the deltas have become larger than a new one."""
    if previous is None or previous.delta_entries > len(previous.tree) + MAX_CHEAP_DELTA:
        return None
    return await load(store, previous.base, memory)


def _encode(
    tree: Tree, locations: PieceLocations, base: Snapshot | None, previous: Snapshot | None
) -> tuple[int, bytes]:
    if base is None or previous is None:
        return 0, encode_manifest(tree, locations)
    changed = {path: entry for path, entry in tree.items() if base.tree.get(path) != entry}
    gone = tuple(path for path in base.tree if path not in tree)
    delta_entries = previous.delta_entries + len(changed) + len(gone)
    return delta_entries, encode_manifest(changed, locations, base.key, delta_entries, gone)


async def _repack_thin(store: Store, tree: Tree, packer: Packer) -> None:
    locations = _locations_in_use(tree, packer.locations)
    for pack in find_thin_packs(locations):
        # A damaged pack stays where it is: restoring it reports it.
        with suppress(Altered):
            body = await fetch(store, pack)
            shas = [sha for sha, location in locations.items() if location.pack == pack]
            await to_thread_shielded(packer.repack, body, shas)
            await _upload(store, iter(packer.take_packs()))


def _locations_in_use(tree: Tree, locations: PieceLocations) -> dict[str, PieceLocation]:
    files = (entry for entry in tree.values() if isinstance(entry, File))
    return {sha: locations[sha] for file in files for sha in file.pieces if sha in locations}


def _last_packs(packer: Packer) -> Iterator[Pack]:
    packer.close()
    yield from packer.take_packs()


async def _upload(store: Store, packs: Iterator[Pack]) -> None:
    """Upload packs while a thread makes the next ones."""
    uploads: deque[asyncio.Task[bool]] = deque()
    try:
        while (pack := await to_thread_shielded(next, packs, None)) is not None:
            uploads.append(asyncio.create_task(store.create(pack.key, pack.body)))
            if len(uploads) >= PARALLEL_PACKS:
                await uploads.popleft()
        while uploads:
            await uploads.popleft()
    finally:
        for task in uploads:
            task.cancel()
        await asyncio.gather(*uploads, return_exceptions=True)
