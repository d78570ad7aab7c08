"""What a log adds up to, counted while it passes by."""

from collections.abc import Iterable, Iterator

from events.content import ToolDefinition
from events.entry import Entry
from events.messages import SystemPromptEvent
from events.usage import Usage
from exports.notes import moment

COUNTED = tuple(name for name in Usage.model_fields if name not in ("model", "purpose"))


class Totals:
    """`spent` is by purpose and model, in the order they came; `tools` are the newest by name.

    `first` and `last` are the moments of the first and the last event, and empty without any.
    `gaps` are the slots that are not there, as first and last.
    """

    def __init__(self) -> None:
        self.spent: dict[tuple[str, str], Usage] = {}
        self.tools: dict[str, ToolDefinition] = {}
        self.gaps: list[tuple[int, int]] = []
        self.first = self.last = ""

    def watch(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """The same entries; once they have passed, they are counted."""
        due = 0
        for entry in entries:
            if entry.seq > due:
                self.gaps.append((due, entry.seq - 1))
            due = entry.seq + 1
            at = moment(entry.event)
            self.first, self.last = self.first or at, at or self.last
            if entry.usage is not None:
                key = (entry.usage.purpose, entry.usage.model)
                self.spent[key] = added(self.spent.get(key, Usage(model=key[1])), entry.usage)
            if isinstance(entry.event, SystemPromptEvent):
                self.tools |= {tool.name: tool for tool in entry.event.tools}
            yield entry

    @property
    def lost(self) -> str | None:
        """Which events are not there, in a sentence."""
        named = [f"{one}" if one == last else f"{one} to {last}" for one, last in self.gaps]
        return f"These events cannot be read: {', '.join(named)}." if named else None

    @property
    def all(self) -> Usage:
        total = Usage()
        for usage in self.spent.values():
            total = added(total, usage)
        return total

    @property
    def by_model(self) -> dict[str, Usage]:
        """What each model took, for whatever purpose."""
        found: dict[str, Usage] = {}
        for (_, model), usage in self.spent.items():
            found[model] = added(found.get(model, Usage(model=model)), usage)
        return found


def added(one: Usage, other: Usage) -> Usage:
    return one.model_copy(update={it: getattr(one, it) + getattr(other, it) for it in COUNTED})
