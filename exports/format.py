"""What an export is: a pure function of a log and of what is known about its conversation."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from events.entry import Entry


@dataclass(frozen=True)
class About:
    """What is told of a conversation beside its events.

    Slots before `own` are those of the conversation that it forks. `version` is that of perdure.
    """

    conversation_id: str
    status: str = "idle"
    reason: str | None = None
    title: str | None = None
    model: str | None = None
    workspace: str | None = None
    own: int = 0
    version: str = "0"


class Part(NamedTuple):
    """A file of a folder, whole; of what is one document, the next bytes, and no path."""

    path: str
    body: bytes


Parts: TypeAlias = Callable[[About, Iterable[Entry]], Iterator[Part]]
Write: TypeAlias = Callable[[About, Iterable[Entry]], Iterator[bytes]]


@dataclass(frozen=True)
class Format:
    """A way to export; entries come in the order of their slots, some may be missing.

    `suffix` is that of its file, and empty where it is a folder. What `joins` is one JSON value a
    conversation, so that those of many make a file with a line each.
    """

    name: str
    suffix: str
    told: str
    parts: Parts
    joins: bool = False


def document(name: str, suffix: str, told: str, write: Write, joins: bool = False) -> Format:
    """The format whose export is one file."""

    def parts(about: About, entries: Iterable[Entry]) -> Iterator[Part]:
        return (Part("", body) for body in write(about, entries))

    return Format(name, suffix, told, parts, joins)
