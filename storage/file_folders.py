"""The folders of a store in files: their names as keys, and their way to the disk."""

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

DRAFTS_FOLDER = ".aside"
"""Folder for files that have no name yet; a crash may leave one there, unseen."""


def remove_if_empty(folder: Path) -> bool:
    try:
        folder.rmdir()
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
            return False
        raise
    return True


def flush_folder(folder: Path) -> None:
    # A deletion may have removed it when it was empty.
    with contextlib.suppress(FileNotFoundError), open_folder(folder) as descriptor:
        os.fsync(descriptor)


@contextlib.contextmanager
def open_folder(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def list_keys(folder: Path, start: str, prefix: str, after: str) -> Iterator[str]:
    """Yield the keys in `folder`, whose own key is `start`, in the order of S3."""
    for name in list_names(folder):
        key = start + name
        if not name.endswith("/"):
            if key.startswith(prefix) and key > after:
                yield key
            continue
        is_before = key < after and not after.startswith(key)  # all that is in the folder
        if (key.startswith(prefix) or prefix.startswith(key)) and not is_before:
            yield from list_keys(folder / name, key, prefix, after)


def list_names(folder: Path) -> list[str]:
    """List names sorted as keys: a folder's name ends with a slash. A missing folder is empty."""
    try:
        with os.scandir(folder) as items:
            names = [f"{item.name}/" if item.is_dir() else item.name for item in items]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(name for name in names if name != f"{DRAFTS_FOLDER}/")
