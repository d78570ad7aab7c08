"""The events of a log as a sequence, for programs without an event loop."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Protocol, TypeVar, overload

from perdure.client.events.event_list import PAGE_SIZE, EventList
from perdure.events.event import AnyEvent

T = TypeVar("T")


class Wait(Protocol):
    """Waits for what a function awaits, and returns its result."""

    def __call__(self, call: Callable[[], Awaitable[T]], /) -> T: ...


class SyncEventList(Sequence[AnyEvent]):
    """The events of a conversation as a sequence: those of `EventList`, read when asked for."""

    def __init__(self, events: EventList, wait: Wait) -> None:
        self._events = events
        self._wait = wait

    @overload
    def __getitem__(self, index: int) -> AnyEvent: ...
    @overload
    def __getitem__(self, index: slice) -> list[AnyEvent]: ...
    def __getitem__(self, index: int | slice) -> AnyEvent | list[AnyEvent]:
        if isinstance(index, slice):
            cut = (index.start, index.stop, index.step)
            return self._wait(lambda: self._events.read(*cut))
        return self._wait(lambda: self._events.get(index))

    def __len__(self) -> int:
        return self._wait(self._events.length)

    def __iter__(self) -> Iterator[AnyEvent]:
        """Iterate in the order of the log, with a page of events in memory at a time."""
        first = 0
        while page := self[first : first + PAGE_SIZE]:
            yield from page
            first += len(page)

    def get_index(self, event_id: str) -> int:
        """Return the index of the event with this id. Raises KeyError."""
        return self._wait(lambda: self._events.get_index(event_id))

    def find(self, event_id: str) -> AnyEvent:
        """Return the event with this id. Raises KeyError."""
        return self._wait(lambda: self._events.find(event_id))
