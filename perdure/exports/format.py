"""Export formats: pure functions of a log and of metadata about its conversation."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from perdure.events.entry import Entry


@dataclass(frozen=True)
class ExportMetadata:
    """Metadata of a conversation beside its events.

    Slots before `first_own_seq` are those of the conversation that it forks. `version` is that of
    perdure. `max_message_chars` and `vision` are those of the model.
    """

    conversation_id: str
    status: str = "idle"
    reason: str | None = None
    title: str | None = None
    model: str | None = None
    workspace: str | None = None
    first_own_seq: int = 0
    max_message_chars: int | None = None
    vision: bool | None = None
    version: str = "0"


class Part(NamedTuple):
    """A whole file of a folder; or the next bytes of a single file, and no path."""

    path: str
    body: bytes


Parts: TypeAlias = Callable[[ExportMetadata, Iterable[Entry]], Iterator[Part]]
Write: TypeAlias = Callable[[ExportMetadata, Iterable[Entry]], Iterator[bytes]]


@dataclass(frozen=True)
class Format:
    """A way to export; entries come in the order of their slots, some may be missing.

    `suffix` is that of its file, and empty for a folder. `is_one_line` marks a format with one JSON
    value a conversation, so that those of many conversations make a file with a line each.
    """

    name: str
    suffix: str
    description: str
    parts: Parts
    is_one_line: bool = False


def single_file_format(
    name: str, suffix: str, description: str, write: Write, is_one_line: bool = False
) -> Format:
    def parts(about: ExportMetadata, entries: Iterable[Entry]) -> Iterator[Part]:
        return (Part("", body) for body in write(about, entries))

    return Format(name, suffix, description, parts, is_one_line)
