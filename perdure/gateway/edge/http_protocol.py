"""HTTP/1.1 as uvicorn serves it, with limits for clients that do not finish their requests."""

import asyncio
from collections import OrderedDict
from typing import Any, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from perdure.gateway.errors import problem_response


class LimitedProtocol(H11Protocol):
    """A connection; those that wait for a request, or for the rest of one, are limited in number.

    Whoever opens thousands of connections and sends nothing, or half a request, takes no place from
    others: their requests are read at once. The head has to come in time; TransferLimits sees to
    the body.
    """

    head_timeout: ClassVar[float] = 15.0
    """Seconds within which the head of a request must come."""
    max_half_open: ClassVar[int] = 1000
    """Connections that wait for the head of a request; of more, the oldest is closed."""
    max_half_sent: ClassVar[int] = 1000
    """Connections that wait for the rest of a body; of more, the oldest is closed."""
    drain_timeout: ClassVar[float] = 2.0
    """Seconds for which the rest of a refused body is read: a connection that is closed before may
    take the answer with it."""
    half_open: ClassVar[OrderedDict["LimitedProtocol", None]] = OrderedDict()
    half_sent: ClassVar[OrderedDict["LimitedProtocol", None]] = OrderedDict()

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._head_timer: asyncio.TimerHandle | None = None
        self._drain_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        if self._head_timer is None and self._is_between_requests():
            self._await_head()
        super().data_received(data)
        if not self._is_between_requests():
            self._end_waiting()
        elif self._drain_timer is not None:  # the rest of the body has come after all
            self._end_draining()
        self._note_body()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY:
            self._drain_timer = self.loop.call_later(self.drain_timeout, self._close)

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self._end_waiting()
        super().handle_websocket_upgrade(event)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - it names nothing
        """Answer what is no request, or has a head that is too long."""
        detail = "The request cannot be read: its head is no HTTP, or is too long."
        response = problem_response(400, "bad_request", detail)
        headers = [*response.raw_headers, (b"connection", b"close")]
        for event in (
            h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
            h11.Data(data=bytes(response.body)),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _is_between_requests(self) -> bool:
        return self.conn.their_state is h11.IDLE

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(self.head_timeout, self._close)
        self.half_open[self] = None
        if len(self.half_open) > self.max_half_open:
            oldest, _ = self.half_open.popitem(last=False)
            oldest._close()

    def _end_waiting(self) -> None:
        self.half_open.pop(self, None)
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _end_draining(self) -> None:
        if self._drain_timer is not None:
            self._drain_timer.cancel()
            self._drain_timer = None

    def _note_body(self) -> None:
        """Count the connection while the rest of a body is missing."""
        if self.conn.their_state is not h11.SEND_BODY:
            self.half_sent.pop(self, None)
        elif self not in self.half_sent:
            self.half_sent[self] = None
            if len(self.half_sent) > self.max_half_sent:
                oldest, _ = self.half_sent.popitem(last=False)
                oldest._close()

    def _forget(self) -> None:
        self._end_waiting()
        self._end_draining()
        self.half_sent.pop(self, None)

    def _close(self) -> None:
        self._forget()
        if not self.transport.is_closing():
            self.transport.close()
