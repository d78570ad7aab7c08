"""The audit of the files of a conversation, by its newest snapshot."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from examples.bfcl.objects import StoredEvent
from perdure.storage.errors import StoreError, Unrestorable
from perdure.storage.snapshots.restore import restore
from perdure.storage.store import Store
from reliability.chaos.audit.log import (
    Violation,
    ViolationKind,
    expected_files,
    find_newest_snapshot,
)
from reliability.chaos.audit.start import check_clone_files
from reliability.crashes.scenario import SECRETS


async def check_files(
    store: Store, events: Sequence[StoredEvent], folder: Path, *, equipped: bool
) -> list[Violation]:
    """List what the newest snapshot lacks, and what it should not have."""
    due, snapshot = expected_files(events), find_newest_snapshot(events)
    if not due and not equipped:
        return []
    if snapshot is None:
        return [Violation(ViolationKind.LOST, "files were made, and there is no snapshot")]
    with tempfile.TemporaryDirectory(dir=folder) as name:
        place = Path(name) / "files"
        try:
            await restore(store, snapshot, place)
        except (StoreError, Unrestorable, OSError) as error:
            return [Violation(ViolationKind.DAMAGED, f"{snapshot} cannot be restored: {error}")]
        clone = check_clone_files(place, SECRETS) if equipped else ()
        return [*_find_lost_files(place, due), *clone]


def _find_lost_files(place: Path, due: Mapping[str, str]) -> Iterator[Violation]:
    for path, text in due.items():
        if not (place / path).is_file() or (place / path).read_text() != text:
            yield Violation(ViolationKind.LOST, f"{path} is not what a call said it made")
