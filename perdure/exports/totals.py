"""Sums over a log, counted while it is read."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from perdure.events.content import ToolDefinition
from perdure.events.entry import Entry
from perdure.events.messages import SystemPromptEvent
from perdure.events.usage import Usage
from perdure.exports.notes import utc_timestamp


class Totals:
    """Sums over the entries counted so far.

    `usage` is by purpose and model, in the order they came; `tools` are the newest by name. `first`
    and `last` are the times of the first and the last event, and empty without any. `gaps` are the
    missing slots, as first and last.
    """

    def __init__(self) -> None:
        self.usage: defaultdict[tuple[str, str], Usage] = defaultdict(Usage)
        self.tools: dict[str, ToolDefinition] = {}
        self.gaps: list[tuple[int, int]] = []
        self.first = self.last = ""

    def count(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """Yield the same entries, counting each."""
        next_seq = 0
        for entry in entries:
            if entry.seq > next_seq:
                self.gaps.append((next_seq, entry.seq - 1))
            next_seq = entry.seq + 1
            time = utc_timestamp(entry.event)
            self.first, self.last = self.first or time, time or self.last
            if entry.usage is not None:
                self.usage[entry.usage.purpose, entry.usage.model] += entry.usage
            if isinstance(entry.event, SystemPromptEvent):
                self.tools |= {tool.name: tool for tool in entry.event.tools}
            yield entry

    @property
    def unreadable_note(self) -> str | None:
        """A sentence that names the missing events."""
        ranges = [f"{low}" if low == high else f"{low} to {high}" for low, high in self.gaps]
        return f"These events cannot be read: {', '.join(ranges)}." if ranges else None

    @property
    def total(self) -> Usage:
        return sum(self.usage.values(), Usage())
