"""What a snapshot keeps of a folder, and what one must look like to be restored."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

DEEPEST = 100
"""Folders in folders, at most: each is open while its contents are looked at."""

LONGEST_NAME = 255
LONGEST_TARGET = 4095
MODE = 0o7777
SETID = 0o6000
"""Not kept of files: what root restores would run as root."""


@dataclass(frozen=True)
class Limits:
    """Bytes of a file and of all files, and how many names there may be."""

    file: int = 1 << 30
    total: int = 8 << 30
    entries: int = 200_000


@dataclass(frozen=True, slots=True)
class Folder:
    """`mtime` is in nanoseconds since 1970, here and below."""

    mode: int
    mtime: int


@dataclass(frozen=True, slots=True)
class File:
    """`pieces` are the SHA-256 of its parts; `torn`: it never stood still while it was read."""

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
    """Another name of the file at `to`."""

    to: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """It was there, and is not kept."""

    why: str


Entry: TypeAlias = Folder | File | Symlink | Hardlink | Skipped
Tree: TypeAlias = dict[str, Entry]
"""By path from the folder, whose own is empty; bytes that are no UTF-8 are surrogates."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a piece is: in the object at the key `pack`, once that is unpacked."""

    pack: str
    offset: int
    length: int


Places: TypeAlias = Mapping[str, Place]


def in_order(paths: Iterable[str]) -> list[str]:
    """A folder before what is in it, and that before the next folder."""
    return sorted(paths, key=lambda path: path.split("/"))


def check(tree: Tree, places: Places, limits: Limits) -> None:
    """Raises ValueError where restoring it could reach outside of a folder, or fill the disk."""
    if not isinstance(tree.get(""), Folder):
        raise ValueError("it has no folder to begin with")
    if len(tree) > limits.entries:
        raise ValueError(f"it has more than {limits.entries:,} names")
    for path, entry in tree.items():
        if path and not isinstance(entry, Skipped):
            _check_path(path, tree)
        _check_entry(path, entry, tree, places)
    if sum(entry.size for entry in tree.values() if isinstance(entry, File)) > limits.total:
        raise ValueError(f"its files have more than {limits.total:,} bytes")


def _check_path(path: str, tree: Tree) -> None:
    names = path.split("/")
    if len(names) > DEEPEST + 1 or not all(map(_is_name, names)):
        raise ValueError(f"{path!r} is no path inside a folder")
    # Every folder above is looked at in its turn, so that none of them can be a link.
    if not isinstance(tree.get("/".join(names[:-1])), Folder):
        raise ValueError(f"{path!r} is not in one of its folders")


def _is_name(name: str) -> bool:
    return (
        name not in ("", ".", "..")
        and "\0" not in name
        and len(name.encode("utf-8", "surrogateescape")) <= LONGEST_NAME
    )


def _check_entry(path: str, entry: Entry, tree: Tree, places: Places) -> None:
    match entry:
        case File():
            lengths = [places[piece].length for piece in entry.pieces if piece in places]
            if len(lengths) != len(entry.pieces) or sum(lengths) != entry.size:
                raise ValueError(f"the pieces of {path!r} do not make a whole")
        case Hardlink() if not isinstance(tree.get(entry.to), File):
            raise ValueError(f"{path!r} is a link to what is no file of it")
        case Symlink():
            size = len(entry.target.encode("utf-8", "surrogateescape"))
            if "\0" in entry.target or not 0 < size <= LONGEST_TARGET:
                raise ValueError(f"{path!r} is a link that leads nowhere")
