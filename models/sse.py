"""Server-sent events, as chat-completion streams use them."""

import json
from collections.abc import AsyncIterator
from typing import Any


async def lines(body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The lines of a body.

    Split at newlines alone: httpx and str.splitlines also split at U+2028 and its kin, which JSON
    may hold unescaped.
    """
    rest = b""
    async for piece in body:
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield line.rstrip(b"\r")
    if rest:
        yield rest


async def events(body: AsyncIterator[bytes]) -> AsyncIterator[Any]:
    """The JSON values of a stream, up to its `[DONE]` or its end.

    Raises json.JSONDecodeError where an event is not JSON.
    """
    data: list[bytes] = []
    async for line in lines(body):
        if line.startswith(b"data:"):
            data.append(line[5:].strip())
        elif not line and data:
            if data == [b"[DONE]"]:
                return
            yield json.loads(b"\n".join(data))
            data = []
    if data and data != [b"[DONE]"]:
        yield json.loads(b"\n".join(data))
