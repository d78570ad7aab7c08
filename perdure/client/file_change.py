"""A changed file of a workspace, as clients see it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True)
class FileChange:
    """A file that was added, changed or removed, with its numbers of lines.

    `path` is relative to the workspace. The numbers are None where the file is no text, or too
    large to compare.
    """

    path: str
    kind: Literal["added", "changed", "removed"]
    added: int | None
    removed: int | None


class Changes(Protocol):
    """The changes that some events made in a workspace."""

    @property
    def faults(self) -> Sequence[str]:
        """Sentences on what could not be compared."""

    def summarize(self) -> list[FileChange]:
        """List the files that differ."""

    def diff(self) -> str:
        """Return the unified diff of all files."""


@dataclass(frozen=True)
class GatewayChanges:
    """The changes that some events made in a workspace, as the gateway lists them."""

    files: Sequence[FileChange]
    faults: Sequence[str]
    unified: str

    def summarize(self) -> list[FileChange]:
        return list(self.files)

    def diff(self) -> str:
        return self.unified
