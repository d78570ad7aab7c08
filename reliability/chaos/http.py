"""HTTP/1.1 messages as bytes, parsed only as far as finding their end needs."""

import asyncio
from dataclasses import dataclass


@dataclass(frozen=True)
class Request:
    """`head` ends with its empty line; `body` is framed as `head` says."""

    method: str
    path: str
    head: bytes
    body: bytes

    @property
    def writes(self) -> bool:
        return self.method in ("PUT", "POST", "DELETE")

    @property
    def reads(self) -> bool:
        return self.method == "GET"


@dataclass(frozen=True)
class Answer:
    status: int
    head: bytes
    body: bytes


async def read_request(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> Request | None:
    """Read the next request of a connection; None where it has been closed.

    Raises IncompleteReadError where the client goes away in the middle, and ConnectionError.
    """
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if not error.partial:
            return None
        raise
    method, path, _ = head.partition(b"\r\n")[0].decode("latin-1").split(" ", 2)
    if _field(head, "expect").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        head = _without(head, "expect")
    return Request(method, path, head, await _body(reader, head))


async def read_answer(reader: asyncio.StreamReader, method: str) -> Answer:
    """Read a response. Raises IncompleteReadError or ConnectionError if the server is lost."""
    head = await reader.readuntil(b"\r\n\r\n")
    status = int(head.split(b" ", 2)[1])
    if 100 <= status < 200:
        return await read_answer(reader, method)
    bare = method == "HEAD" or status in (204, 304)
    return Answer(status, head, b"" if bare else await _body(reader, head))


async def _body(reader: asyncio.StreamReader, head: bytes) -> bytes:
    if _field(head, "transfer-encoding").lower() == "chunked":
        return await _chunks(reader)
    return await reader.readexactly(int(_field(head, "content-length") or 0))


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    """Read all chunks with their sizes and the trailer."""
    read = bytearray()
    size = -1
    while size:
        line = await reader.readuntil(b"\r\n")
        size = int(line.partition(b";")[0], 16)
        read += line
        if size:
            read += await reader.readexactly(size + 2)
    while (line := await reader.readuntil(b"\r\n")) != b"\r\n":
        read += line
    return bytes(read + line)


def _field(head: bytes, name: str) -> str:
    for line in head.split(b"\r\n")[1:]:
        key, _, value = line.partition(b":")
        if key.decode("latin-1").strip().lower() == name:
            return value.decode("latin-1").strip()
    return ""


def _without(head: bytes, name: str) -> bytes:
    lines = head.split(b"\r\n")
    return b"\r\n".join(line for line in lines if not line.lower().startswith(f"{name}:".encode()))
