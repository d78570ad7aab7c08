"""A deviation from a protocol, planted in what serves it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Deviation:
    """A fault: in `file`, the only `old` text becomes `new`.

    `name` says what a client then sees.
    """

    name: str
    file: str
    old: str
    new: str


@dataclass(frozen=True)
class Surface:
    """The deviations of one protocol, and the tests that have to notice each of them."""

    name: str
    tests: tuple[str, ...]
    deviations: tuple[Deviation, ...]
