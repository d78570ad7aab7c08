"""Masking of secrets in a byte stream, however it is cut into chunks."""

from collections.abc import Callable

from perdure.secrets.patterns import Patterns


class Masker:
    """Replaces each secret in a stream of bytes by `<secret:NAME>`.

    The output does not depend on how the stream is cut. Bytes that may begin a secret are held
    back until the rest comes. `patterns` is called each time, so that new secrets count at once.
    """

    def __init__(self, patterns: Callable[[], Patterns]) -> None:
        self._patterns = patterns
        self._pending = b""
        self._emitted = 0
        self._last: str | None = None

    def feed(self, chunk: bytes) -> bytes:
        """Add a chunk, and return the output that is certain by now."""
        text = self._pending + chunk
        hold = self._patterns().unfinished(text)
        return self._emit(text, hold, hold)

    def flush(self) -> bytes:
        """Return the bytes held back; a secret that goes on in the next chunk is still found."""
        pending = self._pending
        output = self._emit(pending, len(pending), self._patterns().unfinished(pending))
        self._last = None  # the reader of the next output has not seen the name
        return output

    def _emit(self, text: bytes, upto: int, keep: int) -> bytes:
        """Return the new output before `upto`; keep the text from `keep` on for the next search."""
        out: list[bytes] = []
        at = self._emitted
        for start, end, name in self._patterns().spans(text):
            if start >= upto:
                break
            if end <= at:
                continue
            if start > at:
                out.append(text[at:start])
            if self._last is None or start > at or (start == at and self._last != name):
                out.append(f"<secret:{name}>".encode())
                self._last = name
            at = end
        if at < upto:
            out.append(text[at:upto])
            at, self._last = upto, None
        self._pending, self._emitted = text[keep:], at - keep
        return b"".join(out)


def mask_bytes(text: bytes, patterns: Patterns) -> bytes:
    """Mask the secrets in a text; return the same object if there are none."""
    if not patterns.spans(text):
        return text
    masker = Masker(lambda: patterns)
    return masker.feed(text) + masker.flush()
