"""The responses about the files of a conversation."""

from typing import Literal

from pydantic import Field

from perdure.events.base import Tolerant


class File(Tolerant):
    """A file of a workspace, with its size in bytes."""

    path: str
    size: int


class Files(Tolerant):
    """`GET …/files`: the files of the workspace as they were kept last up to a slot.

    `seq` is the slot whose event kept them; None where the store has no files up to there.
    `fault` is the reason why later changes were not kept, and `left_out` has paths that are not
    kept, with the reason.
    """

    seq: int | None = None
    items: tuple[File, ...] = ()
    fault: str | None = None
    left_out: dict[str, str] = Field(default_factory=dict)


class FileChange(Tolerant):
    """A changed file; the numbers of lines are None where it is no text, or too large."""

    path: str
    kind: Literal["added", "changed", "removed"]
    added: int | None
    removed: int | None


class Changes(Tolerant):
    """`GET …/diff`: what some events changed in the workspace, as a list and as a unified diff."""

    items: tuple[FileChange, ...]
    diff: str
    faults: tuple[str, ...] = ()
    """Sentences on what could not be compared."""
