"""Events as AG-UI writes them, and the names that a run has given out."""

from typing import Any, TypeAlias

Event: TypeAlias = dict[str, Any]


def make_event(kind: str, **fields: Any) -> Event:
    """Make an event without the fields that are None: a client takes null for an error."""
    return {"type": kind, **leave_out_none(**fields)}


def leave_out_none(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


class Names:
    """The names that things of a run have: each is opened once.

    What a model that was asked again says anew has a name of its own.
    """

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def open(self, name: str) -> str:
        """Return the name, or if it was opened before, one with a number."""
        count = self._counts[name] = self._counts.get(name, 0) + 1
        return name if count == 1 else f"{name}_{count}"
