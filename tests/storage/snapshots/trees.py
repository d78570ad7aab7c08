"""Random folders, random changes, and a comparable form of a folder's contents."""

import os
import random
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

PREFIX = "users/somebody/conversations/0195ab6c-0000-7000-8000-000000000001/"
FORK = "users/somebody/conversations/0195ab6c-0000-7000-8000-000000000002/"

FolderContents: TypeAlias = dict[str, tuple[object, ...]]

NAMES = [
    "a",
    "b.py",
    ".git",
    ".gitignore",
    "with space",
    "new\nline",
    "\udcff\udcfe",
    "100%",
    "%41",
]
NAMES += ["übung", "-rf", "a-b", "*", "x" * 255, "\\", '"quoted"', "~"]
MODES = [0o644, 0o755, 0o600, 0o444, 0o1644]
FOLDER_MODES = [0o755, 0o700, 0o1777, 0o2755]
TARGETS = ["a", "../../outside", "/etc/passwd", "nowhere", "\udcff", ".", "with\nline"]


def folder_contents(folder: Path) -> FolderContents:
    """Return everything in the folder: kinds, modes, times, bytes, targets and hard links."""
    first: dict[int, str] = {}
    paths = [folder, *all_paths(folder)]
    return {str(path.relative_to(folder)): _told(path, folder, first) for path in paths}


def _told(path: Path, folder: Path, first: dict[int, str]) -> tuple[object, ...]:
    at = path.lstat()
    if stat.S_ISLNK(at.st_mode):
        return ("link", at.st_mtime_ns, str(path.readlink()))
    if stat.S_ISDIR(at.st_mode):
        return ("folder", at.st_mtime_ns, at.st_mode)
    same = first.setdefault(at.st_ino, str(path.relative_to(folder)))
    return ("file", at.st_mtime_ns, at.st_mode, path.read_bytes(), same)


def make_random_folder(folder: Path, dice: random.Random, things: int = 8) -> None:
    """Make a folder with at most `things` things in it, of every kind."""
    folder.mkdir(exist_ok=True)
    for _ in range(things):
        add(folder, dice)
    folder.chmod(dice.choice([0o700, 0o755]))


def add(folder: Path, dice: random.Random) -> None:
    path = dice.choice([folder, *all_paths(folder, stat.S_ISDIR)]) / dice.choice(NAMES)
    if os.path.lexists(path):
        return
    match dice.randrange(6):
        case 0:
            path.mkdir()
            path.chmod(dice.choice(FOLDER_MODES))
        case 1:
            path.symlink_to(dice.choice(TARGETS))
        case 2 if files := all_paths(folder, stat.S_ISREG):
            path.hardlink_to(dice.choice(files))
        case _:
            _write(path, dice)
    if dice.random() < 0.5:
        os.utime(path, ns=(0, dice.randrange(-(10**9), 10**19)), follow_symlinks=False)


def change(folder: Path, dice: random.Random) -> None:
    """Add, remove, rename, rewrite or chmod something."""
    files = all_paths(folder, stat.S_ISREG)
    if not files or dice.random() < 0.4:
        return add(folder, dice)
    path = dice.choice(files)
    match dice.randrange(4):
        case 0:
            path.unlink()
        case 1:
            path.rename(path.with_name("renamed"))
        case 2:
            path.chmod(dice.choice(MODES))
        case _:
            _write(path, dice)
    return None


def _write(path: Path, dice: random.Random) -> None:
    if dice.random() < 0.5:  # another file of that name, as editors make one
        path.unlink(missing_ok=True)
    path.write_bytes(dice.randbytes(dice.choice([0, 1, 20, 20, 3000])))
    path.chmod(dice.choice(MODES))


def all_paths(folder: Path, kind: Callable[[int], bool] | None = None) -> list[Path]:
    paths: list[Path] = []
    for place, folders, files in os.walk(folder):
        paths += [Path(place, name) for name in [*folders, *files]]
    return [path for path in sorted(paths) if kind is None or kind(path.lstat().st_mode)]


def no_secrets(_: bytes) -> set[str]:
    return set()
