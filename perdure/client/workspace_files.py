"""The files of a conversation's workspace as the store has them, at any slot."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from perdure.client.file_changes import find_files
from perdure.errors import NotFound
from perdure.storage.log.event_log import EventLog
from perdure.storage.snapshots.manifest import Snapshot, SnapshotCache, load
from perdure.storage.snapshots.pieces import find_file, read_pieces
from perdure.storage.snapshots.tree import File


@dataclass(frozen=True)
class KeptFiles:
    """The files that the event in slot `seq` kept, and why later changes were not kept."""

    seq: int
    snapshot: Snapshot
    fault: str | None
    left_out: dict[str, str]

    def sizes(self) -> dict[str, int]:
        """Return the size in bytes of each file, by path."""
        tree = self.snapshot.tree
        files = {path: find_file(tree, path) for path in sorted(tree)}
        return {path: file.size for path, file in files.items() if file is not None}


@dataclass(frozen=True)
class OpenFile:
    """A file that is about to be read."""

    file: File
    pieces: AsyncIterator[bytes]


async def load_kept_files(
    log: EventLog, at: int | None = None, cache: SnapshotCache | None = None
) -> KeptFiles | None:
    """Load what is kept of the workspace after slot `at`, by default now; None without any files.

    Raises Altered, Unrestorable, StoreError.
    """
    found = await find_files(log, at)
    if found is None or found[1].snapshot is None:
        return None
    seq, files = found
    assert files.snapshot is not None
    snapshot = await load(log.store, files.snapshot, cache or SnapshotCache())
    return KeptFiles(seq, snapshot, files.fault, dict(files.left_out))


def open_file(log: EventLog, kept: KeptFiles | None, path: str) -> OpenFile:
    """Open a file to read it. Raises NotFound."""
    file = find_file(kept.snapshot.tree, path) if kept is not None else None
    if kept is None or file is None:
        raise NotFound(f"The store has no file {path!r} of the conversation at that slot.")
    return OpenFile(file, read_pieces(log.store, kept.snapshot, file))
