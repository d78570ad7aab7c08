"""A store in files of a folder: each object is whole or absent, also after a power cut."""

import asyncio
import contextlib
import errno
import hashlib
import itertools
import os
import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

from perdure.storage.errors import StoreError, StoreRefused, StoreUnavailable
from perdure.storage.file_folders import (
    DRAFTS_FOLDER,
    flush_folder,
    list_keys,
    list_names,
    open_folder,
    remove_if_empty,
)
from perdure.storage.file_turns import remove_other_drafts, take_turn
from perdure.storage.store import Version, check_key

T = TypeVar("T")

THREADS = 4  # they wait for the disk, which does one flush at a time

MAX_KNOWN_FOLDERS = 4096
LINK_ATTEMPTS = 9  # at naming a file while deletions nearby may remove its folder
TURNS = 100
MAX_TURN_PAUSE = 0.02
"""Turns at replacing a version before we give up, and the longest pause between two, in seconds."""

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

    async def read_version(self, key: str) -> Version | None:
        return await self._in_thread(_read_version, self._path(key))

    async def replace_version(self, key: str, body: bytes, tag: str) -> bool:
        return await self._in_thread(partial(self._replace_version, body, tag), self._path(key))

    async def delete(self, key: str) -> None:
        await self._in_thread(self._delete, self._path(key))

    async def folders(self, prefix: str, after: str = "", limit: int = 1000) -> list[str]:
        start = f"{after}/" if after else ""
        names = await self._in_thread(list_names, self._folder(prefix))
        return [name[:-1] for name in names if name.endswith("/") and name > start][:limit]

    async def close(self) -> None:
        await asyncio.to_thread(self._threads.shutdown)

    async def list(self, prefix: str, after: str = "", limit: int = 1000) -> list[str]:
        start = prefix[: prefix.rfind("/") + 1]

        def first(folder: Path) -> list[str]:
            return list(itertools.islice(list_keys(folder, start, prefix, after), limit))

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
        with open_folder(path.parent) as folder:
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
        with self._draft(body, uuid4().hex) as draft:
            try:
                self._link_name(path, partial(os.link, draft, path))
            except FileExistsError:
                return False
            finally:
                # Also when the key is taken: its writer may have died before it came to this.
                flush_folder(path.parent)
        return True

    def _replace(self, body: bytes, path: Path) -> None:
        with self._draft(body, uuid4().hex) as draft:
            self._link_name(path, partial(draft.replace, path))
            flush_folder(path.parent)

    def _replace_version(self, body: bytes, tag: str, path: Path) -> bool:
        name, drafts = _hash(str(path.relative_to(self.root)).encode()), self.root / DRAFTS_FOLDER
        self._make_folder(drafts)
        for _ in range(TURNS):
            with take_turn(drafts, name), self._draft(body, f"{name}.{uuid4().hex}") as draft:
                remove_other_drafts(draft, name)
                found = _read_version(path)
                if found is None or found.tag != tag:
                    return False
                # Whoever came after us has removed the draft, and may have replaced the file.
                with contextlib.suppress(FileNotFoundError):
                    draft.replace(path)
                    flush_folder(path.parent)
                    return True
            time.sleep(random.random() * MAX_TURN_PAUSE)
        raise OSError(errno.EAGAIN, "Others replace it all the time", str(path))

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
        flush_folder(folder)
        while folder != self.root and remove_if_empty(folder):
            self._durable.discard(folder)
            folder = folder.parent
            flush_folder(folder)

    @contextlib.contextmanager
    def _draft(self, body: bytes, name: str) -> Iterator[Path]:
        """Yield a file with these bytes, flushed to the disk, under a temporary name."""
        draft = self.root / DRAFTS_FOLDER / name
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
        flush_folder(folder.parent)
        if len(self._durable) >= MAX_KNOWN_FOLDERS:
            self._durable.clear()
        self._durable.add(folder)


def _read(path: Path) -> bytes | None:
    with contextlib.suppress(*NO_FILE):
        return path.read_bytes()
    return None


def _read_version(path: Path) -> Version | None:
    body = _read(path)
    return None if body is None else Version(body, _hash(body))


def _hash(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:32]
