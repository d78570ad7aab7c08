"""Taking a snapshot: new pieces of the folder go to the store, and a manifest names them."""

import hashlib
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from perdure.storage.errors import Altered, Unrestorable
from perdure.storage.snapshots.folders import open_folder, run_ahead, to_thread_shielded
from perdure.storage.snapshots.manifest import Snapshot, SnapshotCache, encode_manifest, fetch, load
from perdure.storage.snapshots.mark import Mark, file_clock, folder_lock
from perdure.storage.snapshots.packs import Pack, Packer, find_thin_packs
from perdure.storage.snapshots.reading import (
    FindSecrets,
    ScannedEntry,
    TreeReader,
    scan,
)
from perdure.storage.snapshots.tree import File, Location, Locations, SnapshotLimits, Symlink, Tree
from perdure.storage.store import Store

MAX_CHEAP_DELTA = 64  # entries that deltas may repeat before a new base is worth its cost
EMPTY = Snapshot("", {}, {}, "", 0)


async def take(
    store: Store,
    prefix: str,
    folder: Path,
    last: str | None,
    cache: SnapshotCache,
    secrets: FindSecrets,
) -> str | None:
    """Store a new snapshot under `prefix`; return its key, or None if nothing changed since `last`.

    `prefix` is a conversation's, and `last` may lie under another's. Files that hold `secrets` are
    left out. An interrupted or a concurrent call for the same folder does no harm. Raises TooLarge,
    Altered and Unrestorable (of `last`), StoreError, and OSError if the folder cannot be read.
    """
    folder = await to_thread_shielded(folder.resolve)
    async with folder_lock(folder):
        mark = await to_thread_shielded(Mark.read, folder)
        previous = await load(store, last, cache) if last else None
        current = previous if mark.key == last else None
        if mark.key and mark.key != last:
            with suppress(Altered, Unrestorable):  # it only saves work
                current = await load(store, mark.key, cache)
        known = {**(current or EMPTY).locations, **(previous or EMPTY).locations}
        packer = Packer(prefix, known)
        read = await _read(store, folder, (current or EMPTY).tree, mark, packer, secrets)
        key = None
        if previous is None or read.tree != previous.tree:
            key = await _write_manifest(store, read.tree, previous, packer, cache)
        new_mark = Mark(key or last, folder.stat().st_ino, read.stamps)
        if new_mark != mark:
            await to_thread_shielded(new_mark.write, folder)
    return key


async def _read(
    store: Store, folder: Path, old: Tree, mark: Mark, packer: Packer, secrets: FindSecrets
) -> TreeReader:
    now = await to_thread_shielded(file_clock, folder)
    with open_folder(folder) as root:
        scanned = await to_thread_shielded(scan, root, SnapshotLimits())
        scanned = await to_thread_shielded(_without_secret_names, scanned, secrets)
        reader = TreeReader(root, scanned, old, mark.stamps, packer, now, secrets)
        with closing(reader.read_packs()) as packs:
            await _upload(store, packs)
    return reader


def _without_secret_names(scanned: list[ScannedEntry], secrets: FindSecrets) -> list[ScannedEntry]:
    """Leave out paths that contain a secret themselves."""
    if not secrets(b"\n".join(map(_name_text, scanned))):
        return scanned
    return [item for item in scanned if not secrets(_name_text(item))]


def _name_text(item: ScannedEntry) -> bytes:
    target = item.entry.target if isinstance(item.entry, Symlink) else ""
    return f"{item.path}\n{target}".encode(errors="replace")


async def _write_manifest(
    store: Store, tree: Tree, previous: Snapshot | None, packer: Packer, cache: SnapshotCache
) -> str:
    """Upload the last packs, and then the manifest."""
    base = None
    if previous and previous.delta_entries <= len(previous.tree) + MAX_CHEAP_DELTA:
        base = await load(store, previous.base, cache)
    else:
        await _repack_thin(store, tree, packer)
    await to_thread_shielded(packer.close)
    await _upload(store, iter(packer.take_packs()))
    delta_entries, body = await to_thread_shielded(_encode, tree, packer.locations, base, previous)
    key = f"{packer.prefix}workspace/{hashlib.sha256(body).hexdigest()}"
    await store.create(key, body)
    locations = _locations_in_use(tree, packer.locations)
    cache.put(key, Snapshot(key, tree, locations, base.key if base else key, delta_entries))
    return key


def _encode(
    tree: Tree, locations: Locations, base: Snapshot | None, previous: Snapshot | None
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


def _locations_in_use(tree: Tree, locations: Locations) -> dict[str, Location]:
    files = (entry for entry in tree.values() if isinstance(entry, File))
    return {sha: locations[sha] for file in files for sha in file.pieces if sha in locations}


async def _upload(store: Store, packs: Iterator[Pack]) -> None:
    async for _ in run_ahead(lambda pack: store.create(pack.key, pack.body), packs):
        pass
