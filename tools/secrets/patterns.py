"""Finds values in a text, in all their forms at once."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from tools.secrets.encodings import LONGEST_PIECE, packed_forms, pieces, text_forms

SHORTEST = 8
"""Bytes of a value that can be masked: a shorter one is in other texts by chance."""

SPREAD = 256
"""Bytes over which a packed form may be broken into lines and groups."""

SEPARATORS = b" \t\r\n:"

_GRAM = 4
_STEP = SHORTEST - _GRAM + 1
"""Every so many bytes a gram is looked up: one of them is in the first bytes of any pattern."""

_FEW = 300
"""Beginnings that are sooner looked for one by one, by a search that the processor is made for."""

Span: TypeAlias = tuple[int, int, str]
"""Where a form begins and ends, and whose it is."""


class _Index:
    """Patterns, to be found in time that grows with the text and not with their number."""

    def __init__(self, names: Mapping[bytes, str]) -> None:
        self._names = names
        self._sorted = sorted(names)
        self._grams: dict[bytes, set[int]] = defaultdict(set)
        self._heads: dict[bytes, list[bytes]] = defaultdict(list)
        for pattern in sorted(names, key=len, reverse=True):
            self._heads[pattern[:SHORTEST]].append(pattern)
            for offset in range(_STEP):
                self._grams[pattern[offset : offset + _GRAM]].add(offset)

    def spans(self, text: bytes) -> Iterator[Span]:
        """For each place where patterns begin, the longest."""
        if len(self._heads) <= _FEW and not any(head in text for head in self._heads):
            return
        grams = self._grams
        ends = range(0, len(text) - _GRAM + 1, _STEP)
        for at in [at for at in ends if text[at : at + _GRAM] in grams]:
            for offset in grams[text[at : at + _GRAM]]:
                if at >= offset and (found := self._at(text, at - offset)):
                    yield at - offset, at - offset + len(found), self._names[found]

    def _at(self, text: bytes, at: int) -> bytes | None:
        heads = self._heads.get(text[at : at + SHORTEST], ())
        return next((pattern for pattern in heads if text.startswith(pattern, at)), None)

    def unfinished(self, text: bytes) -> int:
        """Where a pattern begins that the text ends in the middle of; the end where none does."""
        for at in range(max(0, len(text) - LONGEST_PIECE + 1), len(text)):
            following = bisect_right(self._sorted, text[at:])
            if following < len(self._sorted) and self._sorted[following].startswith(text[at:]):
                return at
        return len(text)


class Patterns:
    """All forms of some values, by the names of these."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._any = bool(names)
        self._plain = _Index(_named(names, text_forms))
        self._packed = _Index(_named(names, packed_forms))

    def spans(self, text: bytes) -> list[Span]:
        """In the order of their beginnings, the longest first; they may overlap."""
        if not self._any:
            return []
        found = [*self._plain.spans(text), *self._spans_of_packed(text)]
        return sorted(found, key=lambda span: (span[0], -span[1], span[2]))

    def _spans_of_packed(self, text: bytes) -> Iterator[Span]:
        packed = list(self._packed.spans(text.translate(None, SEPARATORS)))
        places = _places(text) if packed else []
        for start, end, name in packed:
            first, last = places[start], places[end - 1]
            if last - first < SPREAD:
                yield first, last + 1, name

    def unfinished(self, text: bytes) -> int:
        """Where what may become a form with the text to come begins, at most SPREAD bytes ago."""
        if not self._any:
            return len(text)
        tail = text[-(SPREAD - 1) :]
        places = [*_places(tail), len(tail)]
        packed = places[self._packed.unfinished(tail.translate(None, SEPARATORS))]
        return len(text) - len(tail) + min(packed, self._plain.unfinished(tail))


def _named(names: Mapping[str, str], forms: Callable[[str], set[bytes]]) -> dict[bytes, str]:
    """The pieces of all forms; one that several values have in common is the first one's."""
    named: dict[bytes, str] = {}
    for value, name in names.items():
        for form in forms(value):
            for piece in pieces(form):
                named.setdefault(piece, name)
    return named


def _places(text: bytes) -> list[int]:
    """Of each byte that is no separator, where it stands."""
    return [at for at, byte in enumerate(text) if byte not in SEPARATORS]
