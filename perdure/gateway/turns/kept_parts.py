"""The newest parts of a turn, as many as memory is given to."""

from collections import deque
from collections.abc import Sequence
from itertools import islice

from perdure.gateway.turns.parts import Called, Condensed, Part, Reasoning, Returned, Text

MAX_CHARS = 4 * 1024 * 1024
"""Characters of the parts that are kept of one turn."""

PART_CHARS = 100
"""Characters that a part counts for beside its text."""


class KeptParts:
    """Parts by their number in the turn: the `first` is the oldest that is kept."""

    def __init__(self, max_chars: int = MAX_CHARS) -> None:
        self.first = 0
        self._parts: deque[Part] = deque()
        self.chars = 0
        self._max_chars = max_chars

    def add(self, parts: Sequence[Part]) -> None:
        """Add parts, and drop the oldest ones that are too many; the newest one is kept."""
        self._parts.extend(parts)
        self.chars += sum(map(_measure, parts))
        while self.chars > self._max_chars and len(self._parts) > 1:
            self.chars -= _measure(self._parts.popleft())
            self.first += 1

    def after(self, number: int) -> list[Part]:
        """Return the parts from `number` on, which is not before the first one."""
        return list(islice(self._parts, number - self.first, None))


def _measure(part: Part) -> int:
    match part:
        case Text(text=text, whole=whole):
            return PART_CHARS + len(text) + len(whole)
        case Reasoning(text=text) | Returned(text=text) | Called(arguments=text):
            return PART_CHARS + len(text)
        case Condensed(summary=text):
            return PART_CHARS + len(text or "")
        case _:
            return PART_CHARS
