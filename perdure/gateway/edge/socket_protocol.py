"""Sockets as uvicorn serves them, with a limit for clients that do not read."""

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol


class LimitedSocketProtocol(WebSocketsSansIOProtocol):
    """A socket; nothing more is read of a client that does not take what it was sent.

    The answers to pings wait in memory without a limit otherwise.
    """

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self.writable.is_set():
            self.transport.pause_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.read_paused and not self.transport.is_closing():
            self.transport.resume_reading()
