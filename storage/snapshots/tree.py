"""The tree that a snapshot keeps of a folder, and the checks before it is restored."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

MAX_DEPTH = 100
"""Nested folders: each is open while its contents are scanned."""

MAX_FILE_NAME_BYTES = 255
MAX_TARGET_BYTES = 4095
MODE_BITS = 0o7777
SETID_BITS = 0o6000
"""Bits that are not kept of files: a file restored by root would run as root."""


@dataclass(frozen=True)
class SnapshotLimits:
    """Bytes of one file and of all files, and number of names."""

    file: int = 1 << 30
    total: int = 8 << 30
    entries: int = 200_000


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder; every `mtime` is in nanoseconds since 1970."""

    mode: int
    mtime: int


@dataclass(frozen=True, slots=True)
class File:
    """A file; `pieces` are SHA-256s, and `torn` means that it changed during every read."""

    mode: int
    mtime: int
    size: int
    pieces: tuple[str, ...]
    torn: bool = False


@dataclass(frozen=True, slots=True)
class Symlink:
    target: str
    mtime: int


@dataclass(frozen=True, slots=True)
class Hardlink:
    """Another name of the file at `target`."""

    target: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """A path that was found and is not kept, with the reason."""

    reason: str


TreeEntry: TypeAlias = Folder | File | Symlink | Hardlink | Skipped
Tree: TypeAlias = dict[str, TreeEntry]
"""Entries by path from the folder, whose own is empty; bytes that are no UTF-8 are surrogates."""


@dataclass(frozen=True, slots=True)
class Location:
    """The location of a piece in the unpacked object at the key `pack`."""

    pack: str
    offset: int
    length: int

    def cut(self, raw: bytes) -> bytes:
        return raw[self.offset : self.offset + self.length]


Locations: TypeAlias = Mapping[str, Location]


def sort_paths(paths: Iterable[str]) -> list[str]:
    """Sort a folder before what is in it, and that before the next folder."""
    return sorted(paths, key=lambda path: path.split("/"))


def check_tree(tree: Tree, locations: Locations, limits: SnapshotLimits) -> None:
    """Raise ValueError if restoring the tree could reach outside of a folder, or fill the disk."""
    if not isinstance(tree.get(""), Folder):
        raise ValueError("it has no folder to begin with")
    if len(tree) > limits.entries:
        raise ValueError(f"it has more than {limits.entries:,} names")
    for path, entry in tree.items():
        if path and not isinstance(entry, Skipped):
            _check_path(path, tree)
        _check_entry(path, entry, tree, locations)
    if sum(entry.size for entry in tree.values() if isinstance(entry, File)) > limits.total:
        raise ValueError(f"its files have more than {limits.total:,} bytes")


def _check_path(path: str, tree: Tree) -> None:
    names = path.split("/")
    sizes = (len(name.encode("utf-8", "surrogateescape")) for name in names)
    is_relative = "\0" not in path and not {"", ".", ".."} & set(names)
    if len(names) > MAX_DEPTH + 1 or not is_relative or max(sizes) > MAX_FILE_NAME_BYTES:
        raise ValueError(f"{path!r} is no path inside a folder")
    # Every folder above is checked in its turn, so that none of them can be a link.
    if not isinstance(tree.get("/".join(names[:-1])), Folder):
        raise ValueError(f"{path!r} is not in one of its folders")


def _check_entry(path: str, entry: TreeEntry, tree: Tree, locations: Locations) -> None:
    match entry:
        case File():
            lengths = [locations[piece].length for piece in entry.pieces if piece in locations]
            if len(lengths) != len(entry.pieces) or sum(lengths) != entry.size:
                raise ValueError(f"the pieces of {path!r} do not make a whole")
        case Hardlink() if not isinstance(tree.get(entry.target), File):
            raise ValueError(f"{path!r} is a link to what is no file of it")
        case Symlink():
            size = len(entry.target.encode("utf-8", "surrogateescape"))
            if "\0" in entry.target or not 0 < size <= MAX_TARGET_BYTES:
                raise ValueError(f"{path!r} is a link that leads nowhere")
