"""What a tool prints: bounded in memory, short for the model, whole in the store."""

import codecs
import tempfile
from types import TracebackType
from typing import Self

from tools.tool import Context

SHOWN = 30_000
"""Characters of an output that the model is shown, half of them from its end."""

KEPT = 32 * 1024 * 1024
"""Bytes of an output that are kept; of a longer one, its first."""

_IN_MEMORY = 1024 * 1024


class Output:
    """Bytes as they come, read as UTF-8 (with U+FFFD for what is not).

    Holds a megabyte in memory and the rest, up to KEPT bytes, in a temporary file, which is gone
    when the `with` block is left.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._head = ""
        self._tail = ""
        self.characters = 0
        self.bytes = 0
        self._spool = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - see __exit__

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._spool.close()

    def take(self, chunk: bytes) -> None:
        self._spool.write(chunk[: max(0, KEPT - self.bytes)])
        self.bytes += len(chunk)
        self._append(self._decoder.decode(chunk))

    def _append(self, text: str) -> None:
        room = SHOWN // 2 - len(self._head)
        self.characters += len(text)
        self._head += text[:room]
        self._tail = (self._tail + text[room:])[-SHOWN // 2 :]

    def newest(self, characters: int) -> str:
        """The end of what came so far."""
        return (
            (self._head + self._tail)[-characters:] if not self._cut() else self._tail[-characters:]
        )

    def _cut(self) -> int:
        return self.characters - len(self._head) - len(self._tail)

    async def shown(self, context: Context) -> tuple[str, str | None]:
        """What the model is shown of all that came, and the key of the whole where that is cut."""
        self._append(self._decoder.decode(b"", final=True))
        if not (cut := self._cut()):
            return self._head + self._tail, None
        self._spool.seek(0)
        key = await context.keep(self._spool.read())
        what = "the whole output" if self.bytes <= KEPT else f"its first {KEPT >> 20} MiB"
        note = f"[... {cut:,} characters are left out here; {what} is kept as {key} ...]"
        return f"{self._head}\n{note}\n{self._tail}", key
