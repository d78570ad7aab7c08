"""The limits of a clone on a worker."""

from dataclasses import dataclass


@dataclass(frozen=True)
class CloneLimits:
    """The bytes on the disk that a clone may take, and the seconds."""

    size: int = 2 << 30
    seconds: float = 900.0
