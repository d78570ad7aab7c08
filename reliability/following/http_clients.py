"""Clients that follow over HTTP, as programs of others do."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosedError

from perdure.api.frames import FRAME, Frame
from reliability.following.watcher import Watcher


async def stream_frames(
    client: httpx.AsyncClient, conversation_id: str, after_seq: int = -1, **params: Any
) -> AsyncGenerator[Frame, None]:
    """Yield the frames of a conversation by server-sent events, until the connection ends."""
    path = f"/v1/conversations/{conversation_id}/stream"
    asked = {"after_seq": after_seq, **params}
    async with client.stream("GET", path, params=asked, timeout=None) as response:
        if response.status_code != 200:
            await response.aread()
            response.raise_for_status()
        assert response.headers["content-type"].startswith("text/event-stream")
        fields: dict[str, str] = {}
        async for line in response.aiter_lines():
            if line and not line.startswith(":"):
                name, _, value = line.partition(": ")
                fields[name] = value
            elif "data" in fields:
                frame = FRAME.validate_json(fields["data"])
                assert fields["event"] == frame.kind
                assert fields.get("id") == (str(frame.seq) if frame.kind == "durable" else None)
                yield frame
                fields = {}


def open_socket(
    client: httpx.AsyncClient,
    conversation_id: str,
    after_seq: int = -1,
    owner: str = "",
    max_queue: int | None = None,
) -> connect:
    """Connect a socket that follows a conversation, with the key of a client.

    It does not read from the network while `max_queue` messages wait to be received.
    """
    base = str(client.base_url).replace("http", "ws", 1).rstrip("/")
    owned = f"&owner={owner}" if owner else ""
    address = f"{base}/v1/conversations/{conversation_id}/socket?after_seq={after_seq}{owned}"
    key = client.headers.get("authorization")
    headers = {"Authorization": key} if key else {}
    return connect(address, additional_headers=headers, max_size=None, max_queue=max_queue)


async def receive_frames(socket: ClientConnection) -> AsyncGenerator[Frame, None]:
    """Yield the frames that come on a socket, until it is closed."""
    with suppress(ConnectionClosedError):
        async for message in socket:
            yield FRAME.validate_json(message)


@asynccontextmanager
async def watching_by_stream(
    client: httpx.AsyncClient, conversation_id: str, after_seq: int = -1, **params: Any
) -> AsyncIterator[Watcher]:
    """Follow a conversation by server-sent events while inside."""
    watcher = Watcher(after_seq)
    frames = stream_frames(client, conversation_id, after_seq, **params)
    async with _taking(watcher, frames):
        yield watcher


@asynccontextmanager
async def watching_by_socket(
    client: httpx.AsyncClient, conversation_id: str, after_seq: int = -1, owner: str = ""
) -> AsyncIterator[Watcher]:
    """Follow a conversation by a socket while inside."""
    watcher = Watcher(after_seq)
    async with (
        open_socket(client, conversation_id, after_seq, owner) as socket,
        _taking(watcher, receive_frames(socket)),
    ):
        yield watcher


@asynccontextmanager
async def _taking(watcher: Watcher, frames: AsyncGenerator[Frame, None]) -> AsyncIterator[None]:
    async def take() -> None:
        async for frame in frames:
            watcher.take(frame)

    task = asyncio.create_task(take())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
        await frames.aclose()
        if not task.cancelled():
            task.result()
