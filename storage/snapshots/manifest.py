"""A snapshot as an object of a store: all of a tree, or how it differs from that of a base."""

import zlib
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias, TypeVar
from urllib.parse import quote_from_bytes, unquote_to_bytes

from pydantic import AfterValidator, Field

from events.base import Frozen
from storage.snapshots.packs import PACK, PIECE, inflated
from storage.snapshots.tree import (
    MODE,
    Entry,
    File,
    Folder,
    Hardlink,
    Place,
    Places,
    Skipped,
    Symlink,
    Tree,
)
from storage.store import check_key

E = TypeVar("E", bound=Entry)

LARGEST = 256 << 20
"""Bytes of a manifest that is unpacked."""

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
Mode: TypeAlias = Annotated[int, Field(ge=0, le=MODE)]
Mtime: TypeAlias = Annotated[int, Field(ge=-(10**27), le=10**27)]
Count: TypeAlias = Annotated[int, Field(ge=0)]
Length: TypeAlias = Annotated[int, Field(ge=1, le=PIECE)]
Offset: TypeAlias = Annotated[int, Field(ge=0, le=PACK)]
Path: TypeAlias = str
"""Bytes as in a URL, where they are not printable ASCII."""


class Manifest(Frozen):
    """`pieces` name a pack by its place in `packs`, and files theirs by the place in `pieces`."""

    version: Literal[1] = 1
    base: str | None = None
    spent: Count
    """Entries of all deltas from the base up to here, this one's too."""
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
    """`base` is the key of the manifest that later ones are told by: its own, or that of its base.

    Of `places` it has at least those of its files.
    """

    key: str
    tree: Tree
    places: Places
    base: str
    spent: int


def to_body(
    entries: Tree,
    places: Places,
    base: str | None = None,
    spent: int = 0,
    gone: tuple[str, ...] = (),
) -> bytes:
    """The bytes of a manifest: the same for the same."""
    wanted = _pieces(entries)
    packs = list(dict.fromkeys(places[sha].pack for sha in wanted))
    nth_pack = {pack: nth for nth, pack in enumerate(packs)}
    nth_piece = {sha: nth for nth, sha in enumerate(wanted)}
    manifest = Manifest.model_construct(
        base=base,
        spent=spent,
        packs=tuple(packs),
        pieces=tuple(_row(sha, places[sha], nth_pack) for sha in wanted),
        folders={_told(path): (e.mode, e.mtime) for path, e in _of(entries, Folder)},
        files={
            _told(path): (e.mode, e.mtime, e.size, e.torn, tuple(nth_piece[p] for p in e.pieces))
            for path, e in _of(entries, File)
        },
        symlinks={_told(path): (_told(e.target), e.mtime) for path, e in _of(entries, Symlink)},
        hardlinks={_told(path): _told(e.to) for path, e in _of(entries, Hardlink)},
        skipped={_told(path): e.why for path, e in _of(entries, Skipped)},
        gone=tuple(map(_told, gone)),
    )
    return zlib.compress(manifest.model_dump_json().encode())


def _pieces(entries: Tree) -> list[str]:
    return list(dict.fromkeys(sha for _, file in _of(entries, File) for sha in file.pieces))


def _row(sha: str, place: Place, nth: dict[str, int]) -> tuple[str, int, int, int]:
    return sha, nth[place.pack], place.offset, place.length


def _of(entries: Tree, kind: type[E]) -> list[tuple[str, E]]:
    return [(path, entry) for path, entry in entries.items() if isinstance(entry, kind)]


def parsed(body: bytes) -> Manifest:
    """Raises ValueError where these are not the bytes of a manifest."""
    return Manifest.model_validate_json(inflated(body, LARGEST))


def entries_of(manifest: Manifest) -> tuple[Tree, Places]:
    """Raises ValueError where it refers to what it does not have."""
    places = {sha: Place(_at(manifest.packs, pack), *rest) for sha, pack, *rest in manifest.pieces}
    shas = tuple(sha for sha, *_ in manifest.pieces)
    tree: dict[str, Entry] = {}
    tree |= {_meant(path): Folder(*one) for path, one in manifest.folders.items()}
    for path, (mode, mtime, size, torn, pieces) in manifest.files.items():
        tree[_meant(path)] = File(mode, mtime, size, tuple(_at(shas, nth) for nth in pieces), torn)
    for path, (target, mtime) in manifest.symlinks.items():
        tree[_meant(path)] = Symlink(_meant(target), mtime)
    tree |= {_meant(path): Hardlink(_meant(to)) for path, to in manifest.hardlinks.items()}
    tree |= {_meant(path): Skipped(why) for path, why in manifest.skipped.items()}
    return tree, places


def snapshot(key: str, manifest: Manifest, base: Snapshot | None) -> Snapshot:
    """What the manifest at `key` tells, given the base that it names.

    Raises ValueError where it refers to what it does not have.
    """
    tree, places = entries_of(manifest)
    if base is None:
        return Snapshot(key, tree, places, key, manifest.spent)
    gone = set(map(_meant, manifest.gone))
    kept = {path: entry for path, entry in base.tree.items() if path not in gone}
    return Snapshot(key, kept | tree, {**base.places, **places}, base.key, manifest.spent)


def _at(found: tuple[str, ...], nth: int) -> str:
    if nth >= len(found):
        raise ValueError("it refers to what it does not have")
    return found[nth]


def _told(text: str) -> str:
    return quote_from_bytes(text.encode("utf-8", "surrogateescape"), PRINTABLE)


def _meant(text: str) -> str:
    return unquote_to_bytes(text).decode("utf-8", "surrogateescape")
