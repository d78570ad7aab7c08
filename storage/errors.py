"""Errors of a store, told apart by who has to act.

* StoreError
  - StoreUnavailable: time may mend it, so try again
  - StoreRefused: an operator has to act
    - UnsafeStore: the store does not guarantee what a log is built on
    - WorkspaceBusy: another process does not release a workspace
  - Fenced, Superseded: this writer has to stop
  - BadSlot (Missing, Damaged, BadImage), Altered: an object is not what was written
  - StillForked: it cannot be deleted as long as others need it
  - TooLarge: a workspace exceeds the limits of a snapshot
  - Unrestorable: a snapshot is whole, and yet no folder may be made from it
"""

from perdure.errors import PerdureError


class StoreError(PerdureError):
    """The base of all; `str(error)` is a sentence that says what happened and what to do."""


class StoreUnavailable(StoreError):
    """The store is unreachable, overloaded or broken; the request may have succeeded or not."""


class StoreRefused(StoreError):
    """A bucket, a key or a permission is wrong: no retry will help."""


class UnsafeStore(StoreRefused):
    """The store failed the probe: a log on it could lose or overwrite events."""


class Fenced(StoreError):
    """Another workflow run holds the object at `key`, so this one is no longer the writer."""

    def __init__(self, key: str, run: str) -> None:
        super().__init__(
            f"{key} is held by the workflow run {run}: the conversation was re-opened, or its "
            "workflow was reset, and this run must stop. To go on from an earlier point, fork the "
            "conversation instead of resetting its workflow."
        )


class Superseded(StoreError):
    """Another step of this run holds the slot at `key`, and this writer may not walk past it."""

    def __init__(self, key: str, activity: str) -> None:
        super().__init__(
            f"{key} is held by the activity {activity} of the same workflow run, so what this "
            "step did comes too late; the workflow has gone on without it."
        )


class BadSlot(StoreError):
    """The base of all faults of the object at `key`, which slot `seq` is or refers to."""

    sentence = ""

    def __init__(self, seq: int, key: str) -> None:
        super().__init__(self.sentence.format(seq=seq, key=key))
        self.seq = seq


class Missing(BadSlot):
    """The slot has no object, though later ones exist or somebody counted on it."""

    sentence = "The object of seq {seq} is missing: restore {key} from a backup."


class Damaged(BadSlot):
    """The object is not what a log writes there."""

    sentence = (
        "The object of seq {seq} is damaged: restore {key} from a backup or from an older version "
        "of the object."
    )


class BadImage(BadSlot):
    """An image that the event of the slot refers to is lost or altered."""

    sentence = "The image {key} of seq {seq} is lost or altered: restore it from a backup."


def explain_read_only(conversation_id: str, error: BadSlot) -> str:
    """Explain why a damaged conversation cannot be continued, and what to do."""
    sentence = f"The log of {conversation_id} is damaged at seq {error.seq}: it can be read, not"
    if error.seq == 0:
        return f"{sentence} continued. {error}"
    return (
        f"{sentence} continued. Fork it before that: perdure fork {conversation_id} --at "
        f"{error.seq - 1}. Or mend it: {error}"
    )


class Altered(StoreError):
    """The blob at `key` no longer has the SHA-256 that it is named by."""

    def __init__(self, key: str) -> None:
        super().__init__(f"{key} is not what was written: restore it from a backup.")
        self.key = key


class StillForked(StoreError):
    """The conversations `forks` begin with events of the one that was to be deleted."""

    def __init__(self, conversation_id: str, forks: list[str]) -> None:
        super().__init__(
            f"The conversation {conversation_id} has forks that begin with its events: purge "
            f"{', '.join(forks)} first."
        )
        self.forks = forks


class TooLarge(StoreError):
    """A workspace has more, or larger, files than a snapshot takes."""


class WorkspaceBusy(StoreRefused):
    """Another process holds a workspace, and does not release it."""


class Unrestorable(StoreError):
    """The snapshot at `key` is whole, and yet not one that `storage/snapshots` writes."""

    def __init__(self, key: str, why: str) -> None:
        super().__init__(
            f"No workspace may be made from the snapshot {key}, for {why}: go on from an older "
            "one, or with a newer version of perdure if that wrote it."
        )
