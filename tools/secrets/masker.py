"""Puts names in the place of values, wherever reads and writes cut them."""

from collections.abc import Callable

from tools.secrets.patterns import Patterns


class Masker:
    """Takes a text as it comes, and gives it back with `<secret:NAME>` for each value in it.

    However the text is cut, the same comes out. What may be the beginning of a value waits for
    the rest. `patterns` is asked each time: new values count from then on.
    """

    def __init__(self, patterns: Callable[[], Patterns]) -> None:
        self._patterns = patterns
        self._held = b""
        self._given = 0
        self._last: str | None = None

    def feed(self, chunk: bytes) -> bytes:
        """What is certain by now."""
        text = self._held + chunk
        hold = self._patterns().unfinished(text)
        return self._emit(text, hold, hold)

    def flush(self) -> bytes:
        """What was held back, for a reader who cannot wait: a value that goes on is still found."""
        held = self._held
        given = self._emit(held, len(held), self._patterns().unfinished(held))
        self._last = None  # who reads on has not seen the name
        return given

    def _emit(self, text: bytes, upto: int, keep: int) -> bytes:
        """The text before `upto` that was not given yet; from `keep` on it is looked at again."""
        out: list[bytes] = []
        at = self._given
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
        self._held, self._given = text[keep:], at - keep
        return b"".join(out)


def masked(text: bytes, patterns: Patterns) -> bytes:
    """The text with names for values; the very same where there are none."""
    if not patterns.spans(text):
        return text
    masker = Masker(lambda: patterns)
    return masker.feed(text) + masker.flush()
