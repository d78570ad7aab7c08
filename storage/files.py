"""A store in files of a folder: each object is whole or absent, also after a power cut."""

import asyncio
import contextlib
import errno
import itertools
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

from perdure.storage.errors import StoreError, StoreRefused, StoreUnavailable
from perdure.storage.store import check_key

T = TypeVar("T")

THREADS = 4  # they wait for the disk, which does one flush at a time

MAX_KNOWN_FOLDERS = 4096
LINK_ATTEMPTS = 9  # at naming a file while deletions nearby may remove its folder
DRAFTS_FOLDER = ".aside"
"""Folder for files that have no name yet; a crash may leave one there, unseen."""

DESCRIPTORS = Path("/proc/self/fd")
NO_NAMELESS_FILES = {errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.EXDEV}
"""Errors of a file system where a file cannot begin without a name."""

# Errors that a person or another program may mend while we retry.
TRANSIENT_ERRNOS = {
    errno.EAGAIN,
    errno.EBUSY,
    errno.EDQUOT,
    errno.EIO,
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOMEM,
    errno.ENOSPC,
    errno.ESTALE,
    errno.ETIMEDOUT,
}


NO_FILE = (FileNotFoundError, NotADirectoryError, IsADirectoryError)


class FileStore:
    """A `Store` in the folder `root`, which is created with the first object.

    A file is written without a name (or aside, where the system cannot do that), flushed to the
    disk, and only then linked to its final name, which the file system does for one writer alone.
    The file system must support hard links.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="files")
        self._durable: set[Path] = set()
        self._nameless = hasattr(os, "O_TMPFILE") and DESCRIPTORS.is_dir()

    async def create(self, key: str, body: bytes) -> bool:
        return await self._in_thread(partial(self._create, body), self._path(key))

    async def read(self, key: str) -> bytes | None:
        return await self._in_thread(_read, self._path(key))

    async def replace(self, key: str, body: bytes) -> None:
        await self._in_thread(partial(self._replace, body), self._path(key))

    async def delete(self, key: str) -> None:
        await self._in_thread(self._delete, self._path(key))

    async def folders(self, prefix: str, after: str = "", limit: int = 1000) -> list[str]:
        start = f"{after}/" if after else ""
        names = await self._in_thread(_list_names, self._folder(prefix))
        return [name[:-1] for name in names if name.endswith("/") and name > start][:limit]

    async def close(self) -> None:
        await asyncio.to_thread(self._threads.shutdown)

    async def list(self, prefix: str, after: str = "", limit: int = 1000) -> list[str]:
        start = prefix[: prefix.rfind("/") + 1]

        def first(folder: Path) -> list[str]:
            return list(itertools.islice(_list_keys(folder, start, prefix, after), limit))

        return await self._in_thread(first, self._folder(start))

    def _path(self, key: str) -> Path:
        check_key(key)
        if key.split("/")[0] == DRAFTS_FOLDER:
            raise ValueError(
                f"{key!r} is not a key of this store: it keeps {DRAFTS_FOLDER} for itself."
            )
        return self.root / key

    def _folder(self, prefix: str) -> Path:
        return self._path(prefix.removesuffix("/")) if prefix else self.root

    async def _in_thread(self, work: Callable[[Path], T], path: Path) -> T:
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._threads, work, path)
        except OSError as error:
            raise self._store_error(error) from error

    def _store_error(self, error: OSError) -> StoreError:
        kind: type[StoreError] = StoreRefused
        advice = "give it a folder that may be written to, on a file system with hard links"
        if error.errno in TRANSIENT_ERRNOS:
            kind, advice = StoreUnavailable, "make room or mend the disk, and it goes on by itself"
        fault = f"'{error.strerror}' ({error.filename})"
        return kind(f"The store in {self.root} failed with {fault}: {advice}.")

    def _create(self, body: bytes, path: Path) -> bool:
        if self._nameless:
            try:
                return self._create_nameless(body, path)
            except OSError as error:  # if nothing else works either, that error says why
                self._nameless = error.errno not in NO_NAMELESS_FILES
        return self._create_aside(body, path)

    def _create_nameless(self, body: bytes, path: Path) -> bool:
        """Write a file that gets its first name when it is on the disk: a crash leaves no draft."""
        self._make_folder(path.parent)
        with _open_folder(path.parent) as folder:
            descriptor = os.open(".", os.O_TMPFILE | os.O_WRONLY, 0o666, dir_fd=folder)
            with os.fdopen(descriptor, "wb") as file:
                file.write(body)
                file.flush()
                os.fsync(descriptor)
                try:
                    # Source: open(2), which has this way to link a file by its descriptor.
                    os.link(f"{DESCRIPTORS}/{descriptor}", path.name, dst_dir_fd=folder)
                except FileExistsError:
                    return False
                finally:
                    # Also when the key is taken: its writer may have died before it came to this.
                    os.fsync(folder)
        return True

    def _create_aside(self, body: bytes, path: Path) -> bool:
        with self._draft(body) as draft:
            try:
                self._link_name(path, partial(os.link, draft, path))
            except FileExistsError:
                return False
            finally:
                # Also when the key is taken: its writer may have died before it came to this.
                _flush_folder(path.parent)
        return True

    def _replace(self, body: bytes, path: Path) -> None:
        with self._draft(body) as draft:
            self._link_name(path, partial(draft.replace, path))
            _flush_folder(path.parent)

    def _link_name(self, path: Path, link: Callable[[], object]) -> None:
        """Call `link` for a name in a folder that a concurrent deletion may remove."""
        for _ in range(LINK_ATTEMPTS):
            with contextlib.suppress(FileNotFoundError):
                self._make_folder(path.parent)
                link()
                return
        self._make_folder(path.parent)
        link()

    def _delete(self, path: Path) -> None:
        """Remove the file, and the folders that it leaves empty: a store has none."""
        try:
            path.unlink()
        except NO_FILE:
            return
        folder = path.parent
        _flush_folder(folder)
        while folder != self.root and _remove_if_empty(folder):
            self._durable.discard(folder)
            folder = folder.parent
            _flush_folder(folder)

    @contextlib.contextmanager
    def _draft(self, body: bytes) -> Iterator[Path]:
        """Yield a file with these bytes, flushed to the disk, under a temporary name."""
        draft = self.root / DRAFTS_FOLDER / uuid4().hex
        self._make_folder(draft.parent)
        try:
            with draft.open("xb") as file:
                file.write(body)
                file.flush()
                os.fsync(file.fileno())
            yield draft
        finally:
            draft.unlink(missing_ok=True)

    def _make_folder(self, folder: Path) -> None:
        """Create `folder` and flush its name, and every one above it, to the disk.

        An existing folder may be another process's, not flushed yet.
        """
        if folder.is_dir() and (folder in self._durable or self.root not in folder.parents):
            return
        self._make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        _flush_folder(folder.parent)
        if len(self._durable) >= MAX_KNOWN_FOLDERS:
            self._durable.clear()
        self._durable.add(folder)


def _read(path: Path) -> bytes | None:
    with contextlib.suppress(*NO_FILE):
        return path.read_bytes()
    return None


def _remove_if_empty(folder: Path) -> bool:
    try:
        folder.rmdir()
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
            return False
        raise
    return True


def _flush_folder(folder: Path) -> None:
    # A deletion may have removed it when it was empty.
    with contextlib.suppress(FileNotFoundError), _open_folder(folder) as descriptor:
        os.fsync(descriptor)


@contextlib.contextmanager
def _open_folder(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _list_keys(folder: Path, start: str, prefix: str, after: str) -> Iterator[str]:
    """Yield the keys in `folder`, whose own key is `start`, in the order of S3."""
    for name in _list_names(folder):
        key = start + name
        if not name.endswith("/"):
            if key.startswith(prefix) and key > after:
                yield key
            continue
        is_before = key < after and not after.startswith(key)  # all that is in the folder
        if (key.startswith(prefix) or prefix.startswith(key)) and not is_before:
            yield from _list_keys(folder / name, key, prefix, after)


def _list_names(folder: Path) -> list[str]:
    """List names sorted as keys: a folder's name ends with a slash. A missing folder is empty."""
    try:
        with os.scandir(folder) as items:
            names = [f"{item.name}/" if item.is_dir() else item.name for item in items]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(name for name in names if name != f"{DRAFTS_FOLDER}/")
