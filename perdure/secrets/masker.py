"""Searching a stream of bytes for all forms of all secrets at once, and masking them."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from perdure.secrets.encodings import MAX_PIECE_BYTES, packed_forms, split_form, text_forms

MIN_SECRET_BYTES = 8
"""Minimum length of a secret; shorter values occur in other texts by chance."""

MAX_PACKED_BYTES = 256
"""Length of text within which a packed form, broken into lines and groups, is found."""

SEPARATORS = b" \t\r\n:"

_GRAM_BYTES = 4
_STEP = MIN_SECRET_BYTES - _GRAM_BYTES + 1
"""Distance of lookups, so that the first bytes of any pattern hold one of them."""

_MAX_LINEAR_HEADS = 300
"""Number of heads up to which searching for each one by one is faster than the index."""

Span: TypeAlias = tuple[int, int, str]
"""Start and end of a form, and the name of its secret."""


class _Index:
    """An index that finds patterns in time linear in the text, whatever their number."""

    def __init__(self, names: Mapping[bytes, str]) -> None:
        self._names = names
        self._sorted = sorted(names)
        self._grams: dict[bytes, set[int]] = defaultdict(set)
        self._heads: dict[bytes, list[bytes]] = defaultdict(list)
        for pattern in sorted(names, key=len, reverse=True):
            self._heads[pattern[:MIN_SECRET_BYTES]].append(pattern)
            for offset in range(_STEP):
                self._grams[pattern[offset : offset + _GRAM_BYTES]].add(offset)

    def spans(self, text: bytes) -> Iterator[Span]:
        """Yield the longest pattern at each position where one begins."""
        if len(self._heads) <= _MAX_LINEAR_HEADS and not any(head in text for head in self._heads):
            return
        grams = self._grams
        ends = range(0, len(text) - _GRAM_BYTES + 1, _STEP)
        for at in [at for at in ends if text[at : at + _GRAM_BYTES] in grams]:
            for offset in grams[text[at : at + _GRAM_BYTES]]:
                if at >= offset and (pattern := self._at(text, at - offset)):
                    yield at - offset, at - offset + len(pattern), self._names[pattern]

    def _at(self, text: bytes, at: int) -> bytes | None:
        heads = self._heads.get(text[at : at + MIN_SECRET_BYTES], ())
        return next((pattern for pattern in heads if text.startswith(pattern, at)), None)

    def unfinished(self, text: bytes) -> int:
        """Return the start of a pattern that the text ends within, else the end of the text."""
        for at in range(max(0, len(text) - MAX_PIECE_BYTES + 1), len(text)):
            following = bisect_right(self._sorted, text[at:])
            if following < len(self._sorted) and self._sorted[following].startswith(text[at:]):
                return at
        return len(text)


class Patterns:
    """Search patterns for all forms of a set of secrets."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._has_secrets = bool(names)
        self._plain = _Index(_index_pieces(names, text_forms))
        self._packed = _Index(_index_pieces(names, packed_forms))

    def spans(self, text: bytes) -> list[Span]:
        """Find all forms, sorted by start and the longest first; they may overlap."""
        if not self._has_secrets:
            return []
        spans = [*self._plain.spans(text), *self._packed_spans(text)]
        return sorted(spans, key=lambda span: (span[0], -span[1], span[2]))

    def _packed_spans(self, text: bytes) -> Iterator[Span]:
        packed = list(self._packed.spans(text.translate(None, SEPARATORS)))
        offsets = _non_separator_offsets(text) if packed else []
        for start, end, name in packed:
            first, last = offsets[start], offsets[end - 1]
            if last - first < MAX_PACKED_BYTES:
                yield first, last + 1, name

    def unfinished(self, text: bytes) -> int:
        """Return the start of a form that may go on behind the text (within MAX_PACKED_BYTES)."""
        if not self._has_secrets:
            return len(text)
        tail = text[-(MAX_PACKED_BYTES - 1) :]
        offsets = [*_non_separator_offsets(tail), len(tail)]
        packed = offsets[self._packed.unfinished(tail.translate(None, SEPARATORS))]
        return len(text) - len(tail) + min(packed, self._plain.unfinished(tail))


def _index_pieces(names: Mapping[str, str], forms: Callable[[str], set[bytes]]) -> dict[bytes, str]:
    """Return the names of secrets by the pieces of their forms; the first secret wins."""
    index: dict[bytes, str] = {}
    for value, name in names.items():
        for form in forms(value):
            for piece in split_form(form):
                index.setdefault(piece, name)
    return index


def _non_separator_offsets(text: bytes) -> list[int]:
    """Return the offsets of all bytes that are no separators."""
    return [at for at, byte in enumerate(text) if byte not in SEPARATORS]


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
