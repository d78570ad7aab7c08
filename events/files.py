"""Where the files of a conversation are."""

from pydantic import Field

from events.base import Tolerant


class Files(Tolerant):
    """`snapshot` is the key of the newest one, `home` the queue of the workers that have the files.

    `fault` says why what was changed since that snapshot could not be kept, `left_out` what is not
    in it and why, ten such things at most.
    """

    home: str
    snapshot: str | None = None
    fault: str | None = None
    left_out: dict[str, str] = Field(default_factory=dict)
