"""The files of a directory as they were when a turn began, on the machine that has the directory.

One SQLite file for each directory keeps the texts of its files once, whatever many conversations
work there: a file whose stamp (inode, times and size) is that of the last scan is not read again.
It survives the end of the worker, and never lies in the directory itself.
"""

import hashlib
import json
import os
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import time, time_ns
from typing import Any, TypeAlias

from perdure.storage.changes.record import (
    GENERATED_FOLDERS,
    MAX_TEXT_BYTES,
    ChangedFile,
    FileVersion,
    read_version,
)
from perdure.storage.snapshots.folders import FolderWalker, open_folder, open_path
from perdure.storage.snapshots.reading import FILE_FLAGS, GONE_ERRNOS, UNREADABLE_ERRNOS, scan
from perdure.storage.snapshots.tree import SnapshotLimits, Symlink

LIMITS = SnapshotLimits(file=1 << 60, total=1 << 60, entries=50_000)
MAX_HASHED_BYTES = 256 << 20
"""Bytes that one scan reads; files beyond are told apart by size and time alone."""

MAX_KEPT_BYTES = 64 << 20
"""Bytes of the texts that one scan keeps."""

MAX_AGE = 30 * 86_400
"""Seconds after which the baseline of a turn that never ended is forgotten."""

CLOCK_TICK_NS = 2_000_000_000
"""A file that changed less long ago may change again without another time: it is read again."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS trees (name TEXT PRIMARY KEY, first INTEGER, made REAL, tree BLOB);
CREATE TABLE IF NOT EXISTS texts (sha TEXT PRIMARY KEY, body BLOB);
"""
_LATEST = ""
"""The name of the tree of the last scan, beside those of conversations."""

Tree: TypeAlias = dict[str, tuple[list[int], str]]
"""Stamp and identity by path; the identity is the SHA-256 of the bytes, or names what is known."""


def open_baseline(folder: Path, directory: Path, conversation_id: str) -> None:
    """Keep the directory as it is now, unless a turn of the conversation is open in it.

    Baselines are in `folder`. Raises TooLarge, OSError and sqlite3.Error.
    """
    with _open_database(folder, directory) as database:
        query = "SELECT first FROM trees WHERE name = ?"
        row = database.execute(query, (conversation_id,)).fetchone()
        if row is None or row[0] is None:
            tree = _scan(database, directory)
            _save_tree(database, conversation_id, tree)


def note_first_action(folder: Path, directory: Path, conversation_id: str, seq: int) -> None:
    """Note the slot of the turn's first action that may change files; a later one is ignored."""
    with _open_database(folder, directory) as database:
        change = "UPDATE trees SET first = ? WHERE name = ? AND first IS NULL"
        database.execute(change, (seq, conversation_id))


def find_changes(
    folder: Path, directory: Path, conversation_id: str
) -> tuple[int, list[ChangedFile]] | None:
    """Compare the directory with the open baseline; return its slot and what differs.

    Returns None where no action of the turn could change files.
    """
    with _open_database(folder, directory) as database:
        query = "SELECT first, tree FROM trees WHERE name = ? AND first IS NOT NULL"
        row = database.execute(query, (conversation_id,)).fetchone()
        if row is None:
            return None
        before, after = _decode_tree(row[1]), _scan(database, directory)
        paths = sorted(
            path
            for path in before.keys() | after.keys()
            if before.get(path, ([], ""))[1] != after.get(path, ([], ""))[1]
        )
        return row[0], [
            ChangedFile(
                path=os.fsencode(path).decode(errors="backslashreplace"),
                before=_load_version(database, before.get(path)),
                after=_load_version(database, after.get(path)),
            )
            for path in paths
        ]


def close_baseline(folder: Path, directory: Path, conversation_id: str) -> None:
    """Forget the baseline of the conversation, and texts that no other one needs."""
    with _open_database(folder, directory) as database:
        change = "DELETE FROM trees WHERE name = ? OR (name != ? AND made < ?)"
        database.execute(change, (conversation_id, _LATEST, time() - MAX_AGE))
        trees = database.execute("SELECT tree FROM trees").fetchall()
        used = {identity for (tree,) in trees for _, identity in _decode_tree(tree).values()}
        known = {sha for (sha,) in database.execute("SELECT sha FROM texts")}
        database.executemany("DELETE FROM texts WHERE sha = ?", [(sha,) for sha in known - used])


@contextmanager
def _open_database(folder: Path, directory: Path) -> Iterator[sqlite3.Connection]:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    name = hashlib.sha256(os.fsencode(directory.resolve())).hexdigest()[:32]
    path = folder / f"{name}.sqlite"
    with closing(sqlite3.connect(path, timeout=30)) as database, database:
        database.executescript(_SCHEMA)
        yield database


def _save_tree(database: sqlite3.Connection, name: str, tree: Tree) -> None:
    body = zlib.compress(json.dumps(tree).encode(), 1)
    change = "INSERT OR REPLACE INTO trees VALUES (?, NULL, ?, ?)"
    database.execute(change, (name, time(), body))


def _decode_tree(body: bytes) -> Tree:
    tree: Tree = json.loads(zlib.decompress(body))
    return tree


def _load_version(database: sqlite3.Connection, item: Any) -> FileVersion | None:
    if item is None:
        return None
    identity = item[1]
    if identity.startswith("link "):
        return FileVersion(reason=f"a symlink to {identity.removeprefix('link ')}")
    query = "SELECT body FROM texts WHERE sha = ?"
    row = database.execute(query, (identity,)).fetchone()
    if row is None:
        return FileVersion(reason="binary or too large to compare")
    return read_version(zlib.decompress(row[0]))


def _scan(database: sqlite3.Connection, directory: Path) -> Tree:
    """Scan the directory, read what changed since the last scan, and save the result."""
    row = database.execute("SELECT tree FROM trees WHERE name = ?", (_LATEST,)).fetchone()
    old = _decode_tree(row[0]) if row else {}
    with open_folder(directory) as root:
        scanner = _Scanner(database, old)
        scanned = scan(root, LIMITS, GENERATED_FOLDERS)
        with closing(FolderWalker(root)) as walker:
            for item in scanned:
                if isinstance(item.entry, Symlink):
                    scanner.tree[item.path] = ([], f"link {item.entry.target}")
                elif item.entry is None:
                    scanner.add(walker, item.path, item.stat)
    if scanner.tree != old:
        _save_tree(database, _LATEST, scanner.tree)
    return scanner.tree


@dataclass
class _Scanner:
    database: sqlite3.Connection
    old: Tree
    tree: Tree = field(default_factory=dict)
    hashed: int = 0
    kept: int = 0
    now: int = field(default_factory=time_ns)

    def add(self, walker: FolderWalker, path: str, status: os.stat_result) -> None:
        stamp = [status.st_ino, status.st_ctime_ns, status.st_mtime_ns, status.st_size]
        known = self.old.get(path)
        is_settled = status.st_ctime_ns < self.now - CLOCK_TICK_NS
        if known is not None and known[0] == stamp and is_settled:
            self.tree[path] = known
            return
        try:
            identity = self._identify(walker, path, status)
        except OSError as error:
            if error.errno in GONE_ERRNOS:
                return
            if error.errno not in UNREADABLE_ERRNOS:
                raise
            identity = f"unreadable {status.st_size} {status.st_mtime_ns}"
        # A stamp from within the last tick would hide a later change: none is kept of it.
        self.tree[path] = (stamp if is_settled else [], identity)

    def _identify(self, walker: FolderWalker, path: str, status: os.stat_result) -> str:
        self.hashed += status.st_size
        if self.hashed > MAX_HASHED_BYTES:
            return f"large {status.st_size} {status.st_mtime_ns}"
        parent, name = walker.open_parent(path)
        with (
            open_path(name, FILE_FLAGS, parent) as descriptor,
            os.fdopen(descriptor, "rb", closefd=False) as file,
        ):
            data = file.read(MAX_TEXT_BYTES + 1)
            digest = hashlib.sha256(data)
            if len(data) <= MAX_TEXT_BYTES:
                self._keep(digest.hexdigest(), data)
            while piece := file.read(1 << 20):
                digest.update(piece)
        return digest.hexdigest()

    def _keep(self, sha: str, data: bytes) -> None:
        self.kept += len(data)
        if self.kept <= MAX_KEPT_BYTES and b"\0" not in data:
            query = "INSERT OR IGNORE INTO texts VALUES (?, ?)"
            self.database.execute(query, (sha, zlib.compress(data, 1)))
