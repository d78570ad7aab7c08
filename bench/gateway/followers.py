"""The ways of a client to follow a conversation: what it gets, frame by frame.

A frame is told as the slot of its event, or its id where there are no slots; as PART where it is a
part of a text that grows; as None where it is anything else.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable
from typing import TypeAlias
from urllib.parse import urlsplit

from websockets.asyncio.client import connect

PART = "part"

OPEN_SECONDS = 120.0
CLOSE_SECONDS = 5.0

Event: TypeAlias = int | str | None
Follow: TypeAlias = Callable[[str, str, str], AsyncGenerator[Event, None]]

_SEQ = re.compile(r'"kind":"durable","seq":([0-9]+)')


async def follow_socket(url: str, key: str, conversation_id: str) -> AsyncGenerator[Event, None]:
    address = f"{url.replace('http', 'ws', 1)}/v1/conversations/{conversation_id}/socket"
    headers = {"Authorization": f"Bearer {key}"}
    opening = connect(
        address,
        additional_headers=headers,
        open_timeout=OPEN_SECONDS,
        close_timeout=CLOSE_SECONDS,
        max_size=None,
    )
    async with opening as socket:
        async for message in socket:
            yield _read_frame(str(message))


async def follow_stream(url: str, key: str, conversation_id: str) -> AsyncGenerator[Event, None]:
    """Yield the frames that come as server-sent events.

    A request of HTTP/1.0 is answered without chunks, so that every line of the body is one of ours.
    """
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port, limit=2**24)
    head = (
        f"GET /v1/conversations/{conversation_id}/stream HTTP/1.0",
        f"Host: {parts.netloc}",
        f"Authorization: Bearer {key}",
    )
    writer.write("\r\n".join((*head, "", "")).encode())
    if b" 200 " not in (first := await reader.readline()):
        _, _, problem = (await reader.read()).decode().partition("\r\n\r\n")
        raise OSError(f"{first.decode().strip()}: {problem}")
    async for line in reader:
        if line.startswith(b"data: "):
            yield _read_frame(line[6:].decode())


def _read_frame(frame: str) -> Event:
    if durable := _SEQ.search(frame, 0, 60):
        return int(durable[1])
    return PART if frame.startswith('{"kind":"delta"') else None


async def follow_openhands(url: str, key: str, conversation_id: str) -> AsyncGenerator[Event, None]:
    address = f"{url.replace('http', 'ws', 1)}/sockets/events/{conversation_id}?resend_mode=all"
    opening = connect(
        address,
        open_timeout=OPEN_SECONDS,
        close_timeout=CLOSE_SECONDS,
        max_size=None,
    )
    async with opening as socket:
        await socket.send(json.dumps({"type": "auth", "session_api_key": key}))
        async for message in socket:
            yield _read_event(json.loads(message))


def _read_event(event: dict[str, object]) -> Event:
    if event["kind"] == "StreamingDeltaEvent":
        return PART
    return None if event.get("key") == "full_state" else str(event["id"])


FOLLOWERS: dict[str, Follow] = {
    "socket": follow_socket,
    "stream": follow_stream,
    "openhands": follow_openhands,
}
