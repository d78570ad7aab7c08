"""The place of a conversation's files."""

from pydantic import Field

from perdure.events.base import Tolerant


class Files(Tolerant):
    """The key of the newest `snapshot`, and the `home` queue of the workers that have the files."""

    home: str
    snapshot: str | None = None
    fault: str | None = None
    """The reason why the changes since that snapshot could not be saved."""
    left_out: dict[str, str] = Field(default_factory=dict)
    """Paths that are not in the snapshot, with the reason; ten at most."""
