"""The log itself, a line for each event: its slot, and the object as it is stored.

What `perdure show -o jsonl` prints and `perdure replay` reads.
"""

from collections.abc import Iterable, Iterator

from events.entry import Entry
from exports.format import About, document
from exports.json_text import one_line


def write(_: About, entries: Iterable[Entry]) -> Iterator[bytes]:
    for entry in entries:
        yield b'{"seq":%d,%b\n' % (entry.seq, one_line(entry.body.lstrip()[1:]))


RAW = document("raw", ".jsonl", "the events as they are stored, a line each", write)
