"""The output of a tool: bounded in memory, cut for the model, stored whole."""

import codecs
import tempfile
from typing import Self

from perdure.tools.tool import Context

MAX_SHOWN_CHARACTERS = 30_000
"""The model sees this much of an output, half of it from the end."""
MAX_STORED_BYTES = 32 * 1024 * 1024
"""The store gets this much of an output, from the beginning."""

_MAX_MEMORY_BYTES = 1024 * 1024


class Output:
    """A buffer for bytes, decoded as UTF-8 (with U+FFFD for invalid bytes).

    Holds a megabyte in memory and the rest, up to MAX_STORED_BYTES, in a temporary file, which the
    end of the `with` block removes.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._head = ""
        self._tail = ""
        self.characters = 0
        self.bytes = 0
        self._spool = tempfile.SpooledTemporaryFile(_MAX_MEMORY_BYTES)  # noqa: SIM115 - see __exit__

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._spool.close()

    def write(self, chunk: bytes) -> None:
        self._spool.write(chunk[: max(0, MAX_STORED_BYTES - self.bytes)])
        self.bytes += len(chunk)
        self._append(self._decoder.decode(chunk))

    def _append(self, text: str) -> None:
        room = MAX_SHOWN_CHARACTERS // 2 - len(self._head)
        self.characters += len(text)
        self._head += text[:room]
        self._tail = (self._tail + text[room:])[-MAX_SHOWN_CHARACTERS // 2 :]

    def tail(self, characters: int) -> str:
        """Return the last characters so far."""
        head = "" if self._omitted_characters() else self._head
        return (head + self._tail)[-characters:]

    def _omitted_characters(self) -> int:
        return self.characters - len(self._head) - len(self._tail)

    async def render(self, context: Context) -> tuple[str, str | None]:
        """Return the text for the model, and the key of the stored whole where the text is cut."""
        self._append(self._decoder.decode(b"", final=True))
        if not (omitted := self._omitted_characters()):
            return self._head + self._tail, None
        self._spool.seek(0)
        key = await context.keep(self._spool.read())
        is_whole = self.bytes <= MAX_STORED_BYTES
        stored = "the whole output" if is_whole else f"its first {MAX_STORED_BYTES >> 20} MiB"
        note = f"[... {omitted:,} characters are left out here; {stored} is kept as {key} ...]"
        return f"{self._head}\n{note}\n{self._tail}", key
