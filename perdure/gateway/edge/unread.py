"""Connections whose clients do not take what they were sent, which would be kept without end."""

from collections.abc import Iterable
from typing import NamedTuple, Protocol

CLOSE_TIMEOUT = 10.0
"""Seconds that a client has at least, once its connection is closed, to take what is left."""

MIN_RATE = 32 * 1024
"""Bytes a second of what is left that a client has to take besides."""

STALL_TIMEOUT = 45.0
"""Seconds without a byte taken after which an open connection is cut off: whoever sends an answer
notices before, unless it waits itself."""

CLOSING = -1


class Transport(Protocol):
    """An asyncio transport, as far as this module uses it."""

    def is_closing(self) -> bool: ...
    def get_write_buffer_size(self) -> int: ...
    def abort(self) -> None: ...


class _Mark(NamedTuple):
    """The bytes that a connection has to send, or CLOSING, and until when it may be so."""

    state: int
    deadline: float


class UnreadConnections:
    """The connections of a server that have something to send, with the time for it.

    A transport that is closed waits for its client without end.
    """

    def __init__(
        self, close_timeout: float = CLOSE_TIMEOUT, stall_timeout: float = STALL_TIMEOUT
    ) -> None:
        self._close_timeout = close_timeout
        self._stall_timeout = stall_timeout
        self._marks: dict[Transport, _Mark] = {}

    def abort_late(self, transports: Iterable[Transport], now: float) -> None:
        """Abort those that should have sent something; `now` is in seconds of one clock."""
        marks = {it: self._mark(it, now) for it in transports}
        self._marks = {it: mark for it, mark in marks.items() if mark.state != 0}
        for transport, mark in self._marks.items():
            if now >= mark.deadline:
                transport.abort()

    def _mark(self, transport: Transport, now: float) -> _Mark:
        size, known = transport.get_write_buffer_size(), self._marks.get(transport)
        state = CLOSING if transport.is_closing() else size
        if known is not None and known.state == state:
            return known
        if state == CLOSING:
            return _Mark(state, now + self._close_timeout + size / MIN_RATE)
        return _Mark(state, now + self._stall_timeout)
