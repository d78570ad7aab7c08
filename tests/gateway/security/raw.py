"""Requests as no client library would send them, byte by byte."""

import asyncio
import contextlib
import re
from collections.abc import Mapping
from typing import NamedTuple

STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")

MAX_ANSWER_SECONDS = 60
"""Seconds after which a connection that neither answers nor ends is a finding."""


class RawAnswer(NamedTuple):
    """All that came back on a connection: the statuses of its answers, none if it was closed."""

    statuses: tuple[int, ...]
    text: str


def build_request(
    target: str, method: str = "GET", headers: Mapping[str, str] | None = None, body: bytes = b""
) -> bytes:
    """Build a request whose target and headers are sent as they are; it ends the connection."""
    given = {"Connection": "close", **(headers or {})}
    if body and "Transfer-Encoding" not in given:
        given.setdefault("Content-Length", str(len(body)))
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {text}" for name, text in given.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


async def send_raw(url: str, *parts: bytes) -> RawAnswer:
    """Send bytes on a connection of its own, and return all that comes back until it ends."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    answer = bytearray()
    async with asyncio.timeout(MAX_ANSWER_SECONDS):
        with contextlib.suppress(ConnectionError):
            for part in parts:
                writer.write(part)
                await writer.drain()
        with contextlib.suppress(ConnectionError):
            while chunk := await reader.read(65536):
                answer += chunk
    writer.close()
    statuses = tuple(int(status) for status in STATUS.findall(answer))
    return RawAnswer(statuses, answer.decode(errors="replace"))
