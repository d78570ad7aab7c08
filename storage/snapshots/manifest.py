"""The manifest of a snapshot, a whole tree or its difference from that of a base; loading it."""

import asyncio
import hashlib
import zlib
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias
from urllib.parse import quote_from_bytes, unquote_to_bytes

from pydantic import AfterValidator, Field

from perdure.events.base import Frozen
from perdure.storage.cache import Cache
from perdure.storage.errors import Altered, Unrestorable
from perdure.storage.snapshots.packs import MAX_PACK_BYTES, MAX_PIECE_BYTES, inflate
from perdure.storage.snapshots.tree import (
    MODE_BITS,
    File,
    Folder,
    Hardlink,
    Location,
    Locations,
    Skipped,
    SnapshotLimits,
    Symlink,
    Tree,
    check_tree,
)
from perdure.storage.store import Store, check_key

MAX_MANIFEST_BYTES = 256 << 20  # unpacked

PRINTABLE = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) != "%")

Sha: TypeAlias = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Pack: TypeAlias = Annotated[
    str,
    Field(pattern=r"^users/[^/]+/conversations/[0-9a-f-]{36}/workspace/packs/[0-9a-f]{64}$"),
    AfterValidator(check_key),
]
Mode: TypeAlias = Annotated[int, Field(ge=0, le=MODE_BITS)]
Mtime: TypeAlias = Annotated[int, Field(ge=-(10**27), le=10**27)]
Count: TypeAlias = Annotated[int, Field(ge=0)]
Length: TypeAlias = Annotated[int, Field(ge=1, le=MAX_PIECE_BYTES)]
Offset: TypeAlias = Annotated[int, Field(ge=0, le=MAX_PACK_BYTES)]
Path: TypeAlias = str
"""Bytes in URL encoding, unless they are printable ASCII."""


class Manifest(Frozen):
    """A stored manifest: `pieces` refer to `packs`, and files to `pieces`, by index."""

    version: Literal[1] = 1
    base: str | None = None
    spent: Count
    """Entries of all deltas from the base up to this one, included."""
    packs: tuple[Pack, ...]
    pieces: tuple[tuple[Sha, Count, Offset, Length], ...]
    folders: dict[Path, tuple[Mode, Mtime]]
    files: dict[Path, tuple[Mode, Mtime, Count, bool, tuple[Count, ...]]]
    symlinks: dict[Path, tuple[str, Mtime]]
    hardlinks: dict[Path, Path]
    skipped: dict[Path, str]
    gone: tuple[Path, ...]


def encode_manifest(
    entries: Tree,
    locations: Locations,
    base: str | None = None,
    spent: int = 0,
    gone: tuple[str, ...] = (),
) -> bytes:
    """Encode a manifest: equal trees make equal bytes."""
    files = [entry for entry in entries.values() if isinstance(entry, File)]
    shas = list(dict.fromkeys(sha for file in files for sha in file.pieces))
    packs = list(dict.fromkeys(locations[sha].pack for sha in shas))
    index = {name: position for names in (packs, shas) for position, name in enumerate(names)}
    places = ((sha, locations[sha]) for sha in shas)
    manifest = Manifest.model_construct(
        base=base,
        spent=spent,
        packs=tuple(packs),
        pieces=tuple((sha, index[at.pack], at.offset, at.length) for sha, at in places),
        folders={},
        files={},
        symlinks={},
        hardlinks={},
        skipped={},
        gone=tuple(map(_quote, gone)),
    )
    for path, entry in entries.items():
        name = _quote(path)
        match entry:
            case Folder():
                manifest.folders[name] = entry.mode, entry.mtime
            case File(mode, mtime, size, pieces, torn):
                manifest.files[name] = mode, mtime, size, torn, tuple(index[p] for p in pieces)
            case Symlink():
                manifest.symlinks[name] = _quote(entry.target), entry.mtime
            case Hardlink():
                manifest.hardlinks[name] = _quote(entry.target)
            case Skipped():
                manifest.skipped[name] = entry.reason
    return zlib.compress(manifest.model_dump_json().encode())


def parse_manifest(body: bytes) -> Manifest:
    """Decode a manifest. Raises ValueError for other bytes."""
    return Manifest.model_validate_json(inflate(body, MAX_MANIFEST_BYTES))


def decode_entries(manifest: Manifest) -> tuple[Tree, Locations]:
    """Build tree and locations. Raises ValueError if a reference has no target."""
    shas = tuple(sha for sha, *_ in manifest.pieces)
    tree: Tree = {_unquote(path): Folder(*fields) for path, fields in manifest.folders.items()}
    for path, (mode, mtime, size, torn, indices) in manifest.files.items():
        pieces = tuple(_lookup(shas, index) for index in indices)
        tree[_unquote(path)] = File(mode, mtime, size, pieces, torn)
    for path, (target, mtime) in manifest.symlinks.items():
        tree[_unquote(path)] = Symlink(_unquote(target), mtime)
    tree |= {_unquote(path): Hardlink(_unquote(to)) for path, to in manifest.hardlinks.items()}
    tree |= {_unquote(path): Skipped(why) for path, why in manifest.skipped.items()}
    return tree, {
        sha: Location(_lookup(manifest.packs, pack), *span) for sha, pack, *span in manifest.pieces
    }


def _lookup(items: tuple[str, ...], index: int) -> str:
    if index >= len(items):
        raise ValueError("it refers to what it does not have")
    return items[index]


def _quote(text: str) -> str:
    return quote_from_bytes(text.encode("utf-8", "surrogateescape"), PRINTABLE)


def _unquote(text: str) -> str:
    return unquote_to_bytes(text).decode("utf-8", "surrogateescape")


# Files may have grown between the scan and the read.
RESTORE_LIMITS = SnapshotLimits(total=2 * SnapshotLimits().total)


@dataclass(frozen=True)
class Snapshot:
    """A loaded snapshot: its tree, and the locations of at least its pieces.

    `base` is the key of the manifest that a later delta refers to: its own, or that of its base.
    """

    key: str
    tree: Tree
    locations: Locations
    base: str
    delta_entries: int


class SnapshotCache(Cache[str, Snapshot]):
    """The cache of snapshots, by key, with `max_size` files together, 0.6 KB each."""

    def __init__(self, max_size: int = 100_000) -> None:
        super().__init__(max_size, lambda snapshot: len(snapshot.tree))


async def load(store: Store, key: str, cache: SnapshotCache) -> Snapshot:
    """Load a snapshot. Raises Altered if an object is missing or altered, and Unrestorable."""
    if (known := cache.get(key)) is not None:
        return known
    manifest = await _load_manifest(store, key)
    base = await _load_base(store, manifest.base, key, cache) if manifest.base is not None else None
    return await _check(key, manifest, base, cache)


async def _load_base(store: Store, key: str, dependent: str, cache: SnapshotCache) -> Snapshot:
    if (known := cache.get(key)) is not None and known.base == key:
        return known
    try:
        manifest = await _load_manifest(store, key)
    except ValueError as error:  # the base is not a key
        raise Unrestorable(dependent, "it goes back to what is no snapshot") from error
    if manifest.base is not None:
        raise Unrestorable(dependent, "it goes back to one that goes back further")
    return await _check(key, manifest, None, cache)


async def _load_manifest(store: Store, key: str) -> Manifest:
    body = await fetch(store, key)
    try:
        return await asyncio.to_thread(parse_manifest, body)
    except ValueError as error:
        raise Unrestorable(key, "it is no manifest of a version that is known") from error


async def _check(
    key: str, manifest: Manifest, base: Snapshot | None, cache: SnapshotCache
) -> Snapshot:
    try:
        snapshot = await asyncio.to_thread(_build, key, manifest, base)
    except ValueError as error:
        raise Unrestorable(key, str(error)) from error
    cache.put(key, snapshot)
    return snapshot


def _build(key: str, manifest: Manifest, base: Snapshot | None) -> Snapshot:
    """Build the snapshot from its manifest. Raises ValueError if it must not be restored."""
    tree, locations = decode_entries(manifest)
    if base is not None:
        gone = set(map(_unquote, manifest.gone))
        tree = {path: entry for path, entry in base.tree.items() if path not in gone} | tree
        locations = {**base.locations, **locations}
    check_tree(tree, locations, RESTORE_LIMITS)
    return Snapshot(key, tree, locations, base.key if base else key, manifest.spent)


async def fetch(store: Store, key: str) -> bytes:
    """Read an object whose name ends with the SHA-256 of its bytes. Raises Altered."""
    body = await store.read(key)
    if body is not None:
        digest = await asyncio.to_thread(hashlib.sha256, body)
        if digest.hexdigest() == key.rpartition("/")[2]:
            return body
    raise Altered(key)
