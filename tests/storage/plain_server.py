"""An S3 server of one answer, which keeps the heads of the requests."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from reliability.chaos.http import read_request

HEAD = b'HTTP/1.1 200 OK\r\nETag: "1"\r\nLast-Modified: Mon, 23 Nov 2026 10:00:00 GMT\r\n'
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\none\r\n0\r\n\r\n"
"""An answer without a length, which obstore refuses."""


class PlainServer:
    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.heads: list[str] = []
        self.endpoint = ""

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator["PlainServer"]:
        async with await asyncio.start_server(self._serve, "127.0.0.1", 0) as server:
            self.endpoint = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            yield self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            if request := await read_request(reader, writer):
                self.heads.append(request.head.decode("latin-1"))
                close = b"\r\nConnection: close"
                writer.write(self.answer.replace(b" OK", b" OK" + close, 1))
                await writer.drain()
        writer.close()
