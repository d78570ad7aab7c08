"""A server that does with each connection what a test tells it, byte by byte."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

from tests.models.anthropic_events import said
from tests.models.requests import stream

Answer: TypeAlias = Callable[["Exchange"], Awaitable[None]]


class Exchange:
    """One connection: its requests as they come, and what is written back."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.heads: list[str] = []

    async def read_request(self) -> str:
        """Read a request with its body, and return its head. Raises IncompleteReadError."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        length = next(
            int(line.partition(":")[2])
            for line in head.splitlines()
            if line.lower().startswith("content-length:")
        )
        await self.reader.readexactly(length)
        self.heads.append(head)
        return head

    def write_stream(self, text: str, *, end: bool = True) -> None:
        """Write a streamed answer in one chunk, and the end of the body if `end`.

        It has the format of the API that was called.
        """
        is_anthropic = "/v1/messages HTTP" in self.heads[-1]
        body = said(text) if is_anthropic else stream({"content": text}) + b"data: [DONE]\n\n"
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
        chunk = f"{len(body):x}\r\n".encode() + body + b"\r\n"
        last = b"0\r\n\r\n" if end else b""
        self.writer.write(head + b"transfer-encoding: chunked\r\n\r\n" + chunk + last)


@asynccontextmanager
async def serve_raw(
    answer: Answer, tls: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[str, list[Exchange]]]:
    """Serve within the context; yield `HOST:PORT` and the list of connections."""
    exchanges: list[Exchange] = []

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        exchange = Exchange(reader, writer)
        exchanges.append(exchange)
        try:
            await answer(exchange)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(connect, "localhost", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    try:
        async with server:
            yield f"localhost:{port}", exchanges
    finally:
        for exchange in exchanges:
            exchange.writer.close()
