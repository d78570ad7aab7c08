"""The manifest of a snapshot: a whole tree, or its difference from that of a base."""

import zlib
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias, TypeVar
from urllib.parse import quote_from_bytes, unquote_to_bytes

from pydantic import AfterValidator, Field

from perdure.events.base import Frozen
from perdure.storage.snapshots.packs import MAX_PACK_BYTES, MAX_PIECE_BYTES, inflate
from perdure.storage.snapshots.tree import (
    MODE_BITS,
    File,
    Folder,
    Hardlink,
    PieceLocation,
    PieceLocations,
    Skipped,
    Symlink,
    Tree,
    TreeEntry,
)
from perdure.storage.store import check_key

E = TypeVar("E", bound=TreeEntry)

MAX_MANIFEST_BYTES = 256 << 20
"""Bytes of an unpacked manifest."""

PRINTABLE = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) != "%")


def _key(text: str) -> str:
    check_key(text)
    return text


Sha: TypeAlias = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Pack: TypeAlias = Annotated[
    str,
    Field(pattern=r"^users/[^/]+/conversations/[0-9a-f-]{36}/workspace/packs/[0-9a-f]{64}$"),
    AfterValidator(_key),
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


@dataclass(frozen=True)
class Snapshot:
    """A loaded snapshot: its tree, and the locations of at least its pieces.

    `base` is the key of the manifest that a later delta refers to: its own, or that of its base.
    """

    key: str
    tree: Tree
    locations: PieceLocations
    base: str
    delta_entries: int


def encode_manifest(
    entries: Tree,
    locations: PieceLocations,
    base: str | None = None,
    spent: int = 0,
    gone: tuple[str, ...] = (),
) -> bytes:
    """Encode a manifest: equal trees make equal bytes."""
    shas = _piece_shas(entries)
    packs = list(dict.fromkeys(locations[sha].pack for sha in shas))
    pack_indices = {pack: index for index, pack in enumerate(packs)}
    piece_indices = {sha: index for index, sha in enumerate(shas)}
    manifest = Manifest.model_construct(
        base=base,
        spent=spent,
        packs=tuple(packs),
        pieces=tuple(
            (sha, pack_indices[(piece := locations[sha]).pack], piece.offset, piece.length)
            for sha in shas
        ),
        folders={_quote(path): (e.mode, e.mtime) for path, e in _entries_of_kind(entries, Folder)},
        files={
            _quote(path): (
                e.mode,
                e.mtime,
                e.size,
                e.torn,
                tuple(piece_indices[p] for p in e.pieces),
            )
            for path, e in _entries_of_kind(entries, File)
        },
        symlinks={
            _quote(path): (_quote(e.target), e.mtime)
            for path, e in _entries_of_kind(entries, Symlink)
        },
        hardlinks={
            _quote(path): _quote(e.target) for path, e in _entries_of_kind(entries, Hardlink)
        },
        skipped={_quote(path): e.reason for path, e in _entries_of_kind(entries, Skipped)},
        gone=tuple(map(_quote, gone)),
    )
    return zlib.compress(manifest.model_dump_json().encode())


def _piece_shas(entries: Tree) -> list[str]:
    return list(
        dict.fromkeys(sha for _, file in _entries_of_kind(entries, File) for sha in file.pieces)
    )


def _entries_of_kind(entries: Tree, kind: type[E]) -> list[tuple[str, E]]:
    return [(path, entry) for path, entry in entries.items() if isinstance(entry, kind)]


def parse_manifest(body: bytes) -> Manifest:
    """Decode a manifest. Raises ValueError for other bytes."""
    return Manifest.model_validate_json(inflate(body, MAX_MANIFEST_BYTES))


def decode_entries(manifest: Manifest) -> tuple[Tree, PieceLocations]:
    """Build tree and locations. Raises ValueError if a reference has no target."""
    locations = {
        sha: PieceLocation(_lookup(manifest.packs, pack), *rest)
        for sha, pack, *rest in manifest.pieces
    }
    shas = tuple(sha for sha, *_ in manifest.pieces)
    tree: dict[str, TreeEntry] = {}
    tree |= {_unquote(path): Folder(*fields) for path, fields in manifest.folders.items()}
    for path, (mode, mtime, size, torn, pieces) in manifest.files.items():
        tree[_unquote(path)] = File(
            mode, mtime, size, tuple(_lookup(shas, index) for index in pieces), torn
        )
    for path, (target, mtime) in manifest.symlinks.items():
        tree[_unquote(path)] = Symlink(_unquote(target), mtime)
    tree |= {_unquote(path): Hardlink(_unquote(to)) for path, to in manifest.hardlinks.items()}
    tree |= {_unquote(path): Skipped(why) for path, why in manifest.skipped.items()}
    return tree, locations


def build_snapshot(key: str, manifest: Manifest, base: Snapshot | None) -> Snapshot:
    """Build the snapshot of the manifest at `key`, given the base that it names.

    Raises ValueError if a reference has no target.
    """
    tree, locations = decode_entries(manifest)
    if base is None:
        return Snapshot(key, tree, locations, key, manifest.spent)
    gone = set(map(_unquote, manifest.gone))
    inherited = {path: entry for path, entry in base.tree.items() if path not in gone}
    return Snapshot(
        key, inherited | tree, {**base.locations, **locations}, base.key, manifest.spent
    )


def _lookup(items: tuple[str, ...], index: int) -> str:
    if index >= len(items):
        raise ValueError("it refers to what it does not have")
    return items[index]


def _quote(text: str) -> str:
    return quote_from_bytes(text.encode("utf-8", "surrogateescape"), PRINTABLE)


def _unquote(text: str) -> str:
    return unquote_to_bytes(text).decode("utf-8", "surrogateescape")
