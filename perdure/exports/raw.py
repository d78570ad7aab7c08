"""The log itself, a line for each event: its slot, and the object as it is stored.

`perdure show -o jsonl` prints this format, and `perdure replay` reads it.
"""

from collections.abc import Iterable, Iterator

from perdure.events.entry import Entry
from perdure.exports.format import ExportMetadata, single_file_format
from perdure.exports.json_text import escape_line_breaks


def write(_: ExportMetadata, entries: Iterable[Entry]) -> Iterator[bytes]:
    for entry in entries:
        yield b'{"seq":%d,%b\n' % (entry.seq, escape_line_breaks(entry.body.lstrip()[1:]))


RAW = single_file_format("raw", ".jsonl", "the events as they are stored, a line each", write)
