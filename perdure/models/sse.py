"""A parser of server-sent events as chat-completion streams use them."""

import json
from collections.abc import AsyncIterator
from typing import Any


async def _split_lines(body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Split a body into lines, at newlines alone; the last one is empty.

    httpx and str.splitlines also split at U+2028 and the like, which JSON may hold unescaped.
    """
    rest = b""
    async for piece in body:
        *complete, rest = (rest + piece).split(b"\n")
        for line in complete:
            yield line.rstrip(b"\r")
    yield rest
    yield b""


async def parse_events(body: AsyncIterator[bytes]) -> AsyncIterator[Any]:
    """Parse the JSON values of a stream, up to its `[DONE]` or its end.

    Raises json.JSONDecodeError when an event is not JSON.
    """
    data: list[bytes] = []
    async for line in _split_lines(body):
        if line.startswith(b"data:"):
            data.append(line[5:].strip())
        elif not line and data:
            if data == [b"[DONE]"]:
                return
            yield json.loads(b"\n".join(data))
            data = []
